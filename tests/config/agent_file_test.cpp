#include "config/agent_file.hpp"
#include "config/agent_keys.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <fstream>
#include <regex>

#include <stdlib.h>

using namespace troupe;

namespace {

struct folder {
  folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-agents-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    before = std::filesystem::current_path();
    std::filesystem::current_path(pattern);
    path = pattern;
  }
  ~folder() {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(path);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  static void write(const std::string& name, const std::string& text) {
    auto parent = std::filesystem::path{name}.parent_path();
    if (!parent.empty())
      std::filesystem::create_directories(parent);
    std::ofstream{name} << text;
  }

  std::filesystem::path path, before;
};

std::string error_of(const std::string& text) {
  folder::write("a.yaml", text);
  auto read = read_agent_file("a.yaml");
  REQUIRE(!read);
  CHECK(read.error().code == errc::invalid_argument);
  return read.error().detail;
}

settings resolved(const agent_file& a, const std::vector<option_input>& flags = {},
                  std::vector<option_input> file = {}) {
  file.insert(file.end(), a.options.begin(), a.options.end());
  auto s = resolve(command::run, file, {}, flags);
  if (!s)
    FAIL(s.error().detail);
  return *s;
}

}  // namespace

TEST_CASE("an agent file says what the options of an agent are", "[agent_file]") {
  folder f;
  folder::write("team/solver.yaml", R"(
name: solver
description: Solves sums.
kind: tool
model: openai/gpt-4.1
temperature: 0.5
instructions: Be brief.
tools: [convert_units, current_time]
imports: [math, "numpy.*"]
profile: ./tight.yaml
limits:
  max_steps: 7
  run_time: 2m
)");
  auto a = read_agent_file("team/solver.yaml");
  REQUIRE(a);
  CHECK((*a)->name == "solver");
  CHECK((*a)->description == "Solves sums.");
  auto s = resolved(**a);
  CHECK(s.agent.kind == "tool");
  CHECK(s.model.model == "openai/gpt-4.1");
  CHECK(s.model.temperature == 0.5);
  CHECK(s.agent.tools == std::vector<std::string>{"convert_units", "current_time"});
  CHECK(s.agent.imports == std::vector<std::string>{"math", "numpy.*"});
  CHECK(s.sandbox.profile == "team/tight.yaml");
  CHECK(s.agent.max_steps == 7);
  CHECK(s.agent.run_time == millis{120'000});
}

TEST_CASE("an agent file is above the configuration and below flags, and --explain says so",
          "[agent_file]") {
  folder f;
  folder::write("a.yaml", "limits:\n  max_steps: 7\ninstructions: of the agent\n");
  auto a = read_agent_file("a.yaml");
  REQUIRE(a);
  auto s = resolved(**a, {{"max_steps", {"9"}, "--max-steps"}},
                    {{"instructions", {"of the configuration"}, "troupe.yaml, line 1"}});
  CHECK(s.agent.max_steps == 9);
  CHECK(s.agent.instructions == "of the agent");
  auto text = explain(s);
  CHECK(std::regex_search(text, std::regex{R"(max_steps +9 +\(--max-steps\))"}));
  CHECK(text.find("(a.yaml, line 3, column 15)") != std::string::npos);
}

TEST_CASE("a file without a name is called after itself", "[agent_file]") {
  folder f;
  folder::write("fact-finder.yaml", "kind: tool\n");
  folder::write("3.yaml", "kind: tool\n");
  CHECK((*read_agent_file("fact-finder.yaml"))->name == "fact_finder");
  CHECK((*read_agent_file("3.yaml"))->name == "agent");
}

TEST_CASE("mistakes in an agent file are named with file, line, column and key", "[agent_file]") {
  folder f;
  CHECK(error_of("kind: tool\nmodle: x\n")
        == "a.yaml, line 2, column 1: unknown key 'modle' (did you mean 'model'?)");
  CHECK(error_of("kind: tool\nmax_steps: 3\n")
        == "a.yaml, line 2, column 1: 'max_steps' belongs under limits:");
  CHECK(error_of("limits:\n  max_step: 3\n")
        == "a.yaml, line 2, column 3: limits: unknown key 'max_step' (did you mean 'max_steps'?)");
  CHECK(error_of("limits: 3\n").starts_with("a.yaml, line 1, column 9: limits: must be"));
  CHECK(error_of("kind: tool\nkind: code\n")
        == "a.yaml, line 2, column 1: 'kind' stands in the file twice");
  CHECK(error_of("name: print\n")
        == "a.yaml, line 1, column 7: name: 'print' is a Python builtin, which it would hide");
  CHECK(error_of("name: class\n") == "a.yaml, line 1, column 7: name: 'class' is a Python keyword");
  CHECK(error_of("api_key: sk-1\n").find("keys do not belong in a file") != std::string::npos);
  CHECK(error_of("tools: {a: b}\n").starts_with("a.yaml, line 1, column 8: tools: a mapping is"));
  CHECK(error_of("tools:\n  - [x]\n").starts_with("a.yaml, line 2, column 5: tools: each"));
  CHECK(error_of("a: [\n").starts_with("a.yaml, line "));
  CHECK(error_of("just text\n").find("expected lines of 'key: value'") != std::string::npos);
  CHECK(error_of("{kind: tool}\n").find("expected lines of 'key: value'") != std::string::npos);
  CHECK(error_of("max_concurrency: 3\n").find("unknown key") != std::string::npos);
  folder::write("a.yaml", "limits:\n  max_steps: many\n");
  auto a = read_agent_file("a.yaml");
  REQUIRE(a);
  auto s = resolve(command::run, (*a)->options, {}, {});
  REQUIRE(!s);
  CHECK(s.error().detail.starts_with("a.yaml, line 2, column 14: max_steps: 'many' is not"));
}

TEST_CASE("prompts stand in the file, or in one beside it", "[agent_file]") {
  folder f;
  folder::write("team/a.yaml", "name: a\nprompts:\n  # the only one\n  system_prompt: |\n"
                               "    You are\n    {{task}}\n  planning:\n    initial_plan: Plan.\n"
                               "instructions: x\n");
  auto a = read_agent_file("team/a.yaml");
  REQUIRE(a);
  auto& given = (*a)->prompts;
  CHECK(given.texts.system_prompt == "You are\n{{task}}\n");
  CHECK(given.texts.initial_plan == "Plan.");
  CHECK(given.texts.final_answer_pre.empty());
  auto all = given.over(shipped_prompts());
  CHECK(all.system_prompt == "You are\n{{task}}\n");
  CHECK(all.final_answer_pre == shipped_prompts().final_answer_pre);
  CHECK(given.placed("system_prompt, line 2: unknown name 'x'")
        == "team/a.yaml, line 4: system_prompt, line 2: unknown name 'x'");
  CHECK(given.placed("planning.initial_plan, line 1: y")
        == "team/a.yaml, line 8: planning.initial_plan, line 1: y");
  CHECK(resolved(**a).agent.prompts.empty());

  folder::write("team/b.yaml", "prompts: mine.yaml\n");
  CHECK(resolved(**read_agent_file("team/b.yaml")).agent.prompts == "team/mine.yaml");
  CHECK(error_of("name: x\nprompts:\n  sistem_prompt: y\n")
        == "a.yaml, line 3, column 3: unknown key 'sistem_prompt' (did you mean 'system_prompt'?)");
  CHECK(error_of("name: x\nprompts: {system_prompt: [1]}\n")
        == "a.yaml, line 2, column 26: system_prompt must be a text");
}

TEST_CASE("children are read from beside their file, a shared one too", "[agent_file]") {
  folder f;
  folder::write("team/boss.yaml", "children: [left.yaml, sub/right.yaml]\n");
  folder::write("team/left.yaml", "children:\n  - sub/shared.yaml\n");
  folder::write("team/sub/right.yaml", "children:\n  - shared.yaml\n");
  folder::write("team/sub/shared.yaml", "kind: tool\n");
  auto boss = read_agent_file("team/boss.yaml");
  if (!boss)
    FAIL(boss.error().detail);
  auto& children = (*boss)->children;
  REQUIRE(children.size() == 2);
  CHECK(children[0].agent->name == "left");
  CHECK(children[1].path == "team/sub/right.yaml");
  CHECK(children[1].where == "team/boss.yaml, line 1, column 23");
  CHECK(children[0].agent->children[0].agent == children[1].agent->children[0].agent);
}

TEST_CASE("a team that contains itself is refused with its ring", "[agent_file]") {
  folder f;
  folder::write("a.yaml", "name: a\nchildren: [b.yaml]\n");
  folder::write("b.yaml", "name: b\nchildren:\n  - a.yaml\n");
  auto read = read_agent_file("a.yaml");
  REQUIRE(!read);
  CHECK(read.error().detail
        == "b.yaml, line 3, column 5: children: cyclic team: a.yaml -> b.yaml -> a.yaml");
  folder::write("self.yaml", "children: [./self.yaml]\n");
  CHECK(read_agent_file("self.yaml").error().detail
        == "self.yaml, line 1, column 12: children: cyclic team: self.yaml -> self.yaml");
}

TEST_CASE("a child that cannot be is named with its place", "[agent_file]") {
  folder f;
  CHECK(error_of("children: [gone.yaml]\n")
        == "a.yaml, line 1, column 12: children: gone.yaml: No such file or directory");
  folder::write("bad.yaml", "kindd: x\n");
  CHECK(error_of("children: [bad.yaml]\n").starts_with("bad.yaml, line 1, column 1: unknown key"));
  folder::write("x/twin.yaml", "name: twin\n");
  folder::write("twin.yaml", "name: twin\n");
  CHECK(error_of("children: [twin.yaml, x/twin.yaml]\n")
        == "a.yaml, line 1, column 23: children: two of them are called 'twin'");
  CHECK(error_of("children: twin.yaml\n").find("must be a list") != std::string::npos);
}

TEST_CASE("the template of init is an agent file, and so is each line of it", "[agent_file]") {
  folder f;
  auto text = agent_file_template("helper");
  folder::write("new.yaml", text);
  auto read = read_agent_file("new.yaml");
  if (!read)
    FAIL(read.error().detail);
  CHECK((*read)->name == "helper");
  auto plain = resolve(command::run, {}, {}, {});
  CHECK(to_json(resolved(**read))["max_steps"]["value"] == to_json(*plain)["max_steps"]["value"]);
  for (auto key : agent_keys())
    CHECK(std::regex_search(text, std::regex{"(^|\n)(# )?" + std::string{key} + ":"}));
  for (auto key : agent_limits())
    CHECK(text.find("\n  " + std::string{key} + ": ") != std::string::npos);
  // What stands behind a comment sign is right as well.
  std::regex commented{"\n# ([a-z_]+: [^\n]+)"};
  for (std::sregex_iterator it{text.begin(), text.end(), commented}, end; it != end; ++it) {
    if (!is_agent_key((*it)[1].str().substr(0, (*it)[1].str().find(':'))))
      continue;
    folder::write("line.yaml", (*it)[1].str() + "\n");
    auto one = read_agent_file("line.yaml");
    if (!one)
      FAIL(one.error().detail);
    static_cast<void>(resolved(**one));
  }
}

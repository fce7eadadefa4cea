// Folders in the form of smolagents' MultiStepAgent.save (smolagents 1.22).
#include "config/agent_file.hpp"
#include "runtime/host/smolagents_import.hpp"
#include "tests/host/runtime_fixture.hpp"

using namespace troupe;

namespace {

constexpr const char* manager = R"({
  "class": "CodeAgent",
  "tools": ["web_search", "convert_units", "final_answer"],
  "managed_agents": {"searcher": "ToolCallingAgent"},
  "model": {"class": "InferenceClientModel",
            "data": {"model_id": "Qwen/Qwen2.5-Coder-32B-Instruct", "provider": "nebius", "temperature": 0.2}},
  "prompt_templates": "prompts.yaml",
  "max_steps": 12,
  "verbosity_level": 1,
  "planning_interval": 3,
  "name": "manager",
  "description": "Leads: \"well\".",
  "requirements": ["ddgs", "smolagents"],
  "authorized_imports": ["math", "numpy.*"],
  "executor_type": "local",
  "executor_kwargs": {},
  "max_print_outputs_length": null
})";

constexpr const char* prompts = R"("system_prompt": |-
  You solve tasks.
  {%- for tool in tools.values() %}
  {{ tool.to_code_prompt() }}
  {%- endfor %}
"planning":
  "initial_plan": |-
    Plan {{task}}.
  "update_plan_pre_messages": |-
    Task {{task}}.
  "update_plan_post_messages": |-
    Left: {{remaining_steps}}.
"managed_agent":
  "task": |-
    You are {{name}}: {{task}}
  "report": |-
    {{name}} says {{final_answer}}
"final_answer":
  "pre_messages": |-
    An agent was stuck.
  "post_messages": |-
    Answer {{task}}
)";

bool left_out(const imported_agent& a, std::string_view what, std::string_view why) {
  for (auto& line : a.left_out)
    if (line.find(what) != std::string::npos && line.find(why) != std::string::npos)
      return true;
  return false;
}

}  // namespace

TEST_CASE("a saved agent becomes an agent file, and what is Python is named", "[import]") {
  test::temporary_folder f;
  f.write("agent.json", manager);
  f.write("prompts.yaml", prompts);
  f.write("managed_agents/searcher/agent.json",
          R"({"class": "ToolCallingAgent", "tools": [], "managed_agents": {}, "name": "searcher",
              "model": {"class": "TransformersModel", "data": {"model_id": "x"}}, "max_steps": 4})");
  f.write("managed_agents/searcher/prompts.yaml", "system_prompt: \"{{tsk}}\"\n");
  auto got = import_smolagents(f.path.string());
  if (!got)
    FAIL(got.error().detail);
  CHECK(got->main == "manager.yaml");
  test::temporary_folder to;
  for (auto& [name, text] : got->files)
    to.write(name, text);
  auto read = read_agent_file((to.path / got->main).string());
  if (!read)
    FAIL(read.error().detail);
  auto s = resolve(command::run, (*read)->options, {}, {});
  REQUIRE(s);
  CHECK((*read)->description == "Leads: \"well\".");
  CHECK(s->agent.kind == "code");
  CHECK(s->model.model == "hf/Qwen/Qwen2.5-Coder-32B-Instruct");
  CHECK(s->model.temperature == 0.2);
  CHECK(s->agent.tools == std::vector<std::string>{"convert_units"});
  CHECK(s->agent.imports == std::vector<std::string>{"math", "numpy.*"});
  CHECK(s->agent.max_steps == 12);
  CHECK(s->agent.prompts == (to.path / "manager.prompts.yaml").string());
  REQUIRE((*read)->children.size() == 1);
  auto& child = *(*read)->children[0].agent;
  CHECK(child.name == "searcher");
  CHECK(resolve(command::run, child.options, {}, {})->agent.kind == "tool");

  CHECK(left_out(*got, "tools/web_search.py", "Python source"));
  CHECK(left_out(*got, "planning_interval", "does not plan"));
  CHECK(left_out(*got, "executor_type", "--executor"));
  CHECK(left_out(*got, "requirements", "profiles"));
  CHECK(left_out(*got, "model", "'TransformersModel' has no provider"));
  CHECK(left_out(*got, "searcher: prompts.yaml", "unknown name 'tsk'"));
  CHECK(!left_out(*got, "verbosity_level", ""));
}

TEST_CASE("a folder that is no saved agent is refused", "[import]") {
  test::temporary_folder f;
  CHECK(import_smolagents(f.path.string()).error().code == errc::not_found);
  f.write("agent.json", "[1]");
  CHECK(import_smolagents(f.path.string()).error().detail.find("no JSON object")
        != std::string::npos);
}

// What a program gets wrong is said before anything runs, in one line with the mend.
#include "tests/host/runtime_fixture.hpp"

using namespace troupe;
using test::one_word;
using test::test_runtime;

namespace {

std::string error_of(test_runtime& t, agent_spec spec) {
  if (spec.kind.empty())
    spec.kind = "tool";
  auto made = t.rt->define(std::move(spec));
  REQUIRE(!made);
  return made.error().detail;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

native_tool named(std::string name) {
  return make_tool(std::move(name), "A tool.", [] { return 1; });
}

}  // namespace

TEST_CASE("a runtime that cannot be is an error", "[embed]") {
  auto no_model = runtime::start({});
  REQUIRE(!no_model);
  CHECK(has(no_model.error().detail, "model"));
  auto no_script = runtime::start({.model = "mock/there-is-none.json"});
  REQUIRE(!no_script);
  CHECK(has(no_script.error().detail, "there-is-none.json"));
  auto typo = runtime::start({.model = "mock/x.json", .options = {{"max_concurency", "3"}}});
  REQUIRE(!typo);
  CHECK(has(typo.error().detail, "did you mean 'max_concurrency'?"));
  auto form = runtime::start({.model = "mock/x.json", .options = {{"stall_timeout", "soon"}}});
  REQUIRE(!form);
  CHECK(has(form.error().detail, "runtime_options: stall_timeout"));
  CHECK(has(form.error().detail, "'soon'"));
  auto none = runtime::start({.model = "mock/x.json", .tool_threads = 0});
  REQUIRE(!none);
  CHECK(has(none.error().detail, "tool_threads"));
}

TEST_CASE("variables of the command line do not reach a library", "[embed]") {
  ::setenv("TROUPE_MAX_STEPS", "no number", 1);
  test_runtime t{one_word};
  CHECK(t.rt->submit(t.define(), "?").wait().ok());
  ::unsetenv("TROUPE_MAX_STEPS");
}

TEST_CASE("a tool whose name Python has already is refused", "[embed]") {
  test_runtime t{one_word};
  CHECK(
    has(error_of(t, {.tools = {named("lambda")}}), "tool 'lambda': its name is a Python keyword"));
  CHECK(has(error_of(t, {.tools = {named("print")}}),
            "tool 'print': its name is a Python builtin, which it would hide"));
  CHECK(has(error_of(t, {.tools = {named("two words")}}), "must be a Python identifier"));
  CHECK(has(error_of(t, {.tools = {named("same"), named("same")}}), "another tool has this name"));
  CHECK(has(error_of(t, {.tools = {named("final_answer")}}), "another tool has this name"));
  CHECK(has(error_of(t, {.tools = {native_tool{.name = "empty"}}}), "has no function to call"));
}

TEST_CASE("a schema that is none is refused", "[embed]") {
  test_runtime t{one_word};
  auto odd = named("odd");
  odd.parameters = ordered_json::parse(R"({"type": "object", "properties": {"x": {"type": 3}}})");
  CHECK(has(error_of(t, {.tools = {odd}}), "tool 'odd': parameters"));
  odd.parameters = "a text";
  CHECK(has(error_of(t, {.tools = {odd}}), "tool 'odd': parameters must be a JSON schema"));
}

TEST_CASE("an agent's own options are checked like the command line's", "[embed]") {
  test_runtime t{one_word};
  CHECK(has(error_of(t, {.builtin_tools = {"convert_unit"}}), "did you mean 'convert_units'?"));
  CHECK(has(error_of(t, {.options = {{"max_step", "3"}}}), "did you mean 'max_steps'?"));
  CHECK(has(error_of(t, {.name = "x", .options = {{"profile", "tight"}}}),
            "agent_spec 'x': profile is the same for all agents of a runtime"));
  CHECK(has(error_of(t, {.kind = "poet"}), "agent_spec 'agent': agent"));
  CHECK(has(error_of(t, {.max_steps = 0}), "max_steps"));
}

TEST_CASE("a template's typo is named with file, line and key", "[embed]") {
  test_runtime t{one_word};
  test::temporary_folder folder;
  auto file = folder.write("agent.yaml", "kind: tool\nprompts:\n  system_prompt: |\n    You are.\n"
                                         "    {{tsk}}\n");
  auto said = error_of(t, {.file = file});
  CHECK(has(said, "agent.yaml, line 3: system_prompt, line 2: unknown name 'tsk'"));
  CHECK(has(said, "did you mean 'task'?"));
}

TEST_CASE("a typed function's schema is that of its arguments", "[embed]") {
  auto t = make_tool(
    "t", "",
    {{"b", ""}, {"i", ""}, {"n", ""}, {"s", "text"}, {"l", ""}, {"m", ""}, {"o", ""}, {"j", ""}},
    [](bool, int, double, const std::string&, std::vector<int>, std::map<std::string, double>,
       std::optional<int> o, const json& j) {
      return json{o.value_or(-1), j};
    });
  auto& p = t.parameters["properties"];
  CHECK(p["b"]["type"] == "boolean");
  CHECK(p["i"]["type"] == "integer");
  CHECK(p["n"]["type"] == "number");
  CHECK(p["s"] == ordered_json{{"type", "string"}, {"description", "text"}});
  CHECK(p["l"]["items"]["type"] == "integer");
  CHECK(p["m"]["additionalProperties"]["type"] == "number");
  CHECK(p["o"]["type"] == "integer");
  CHECK(!p["j"].contains("type"));
  CHECK(t.parameters["required"] == ordered_json{"b", "i", "n", "s", "l", "m", "j"});
  json arguments{{"b", true},           {"i", 1},         {"n", 1}, {"s", ""}, {"l", {1}},
                 {"m", json::object()}, {"j", {{"x", 1}}}};
  CHECK(*t.call(arguments, {}) == json::parse(R"([-1, {"x": 1}])"));
  arguments["o"] = 7;
  CHECK(*t.call(arguments, {}) == json::parse(R"([7, {"x": 1}])"));
  auto nothing = make_tool("n", "", [] {});
  CHECK(nothing.call({}, {})->is_null());
  auto failing = make_tool("f", "", []() -> result<void> { return fail(errc::denied, "no"); });
  CHECK(failing.call({}, {}).error().detail == "no");
}

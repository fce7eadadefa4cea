#include "runtime/agent/prompt.hpp"
#include "runtime/agent/tool_stub.hpp"
#include "tests/agent/agent_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace troupe;

namespace {

tool_spec weather() {
  tool_spec t;
  t.name = "weather";
  t.description = "Tells the weather.\nOf one day.";
  t.output_type = "object";
  t.parameters = ordered_json::parse(R"({"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "description": "where"},
    "days": {"type": ["integer", "null"], "default": 1, "description": "how far ahead"},
    "unit": {"type": "string", "enum": ["C", "F"]}}})");
  return t;
}

result<std::string> render(std::string_view source, std::vector<std::string> names = {"task"}) {
  auto t = prompt_template::parse("test", source, std::move(names));
  if (!t)
    return fail(t.error());
  return t->render({{weather(), test::final_answer_spec()}, {{"task", "T"}, {"empty", ""}}});
}

std::string complaint(std::string_view source) {
  auto r = render(source, {"task", "tools", "managed_agents", "empty"});
  REQUIRE(!r);
  CHECK(r.error().code == errc::invalid_argument);
  return r.error().detail;
}

}  // namespace

TEST_CASE("a tool is shown as a Python function with types, defaults and a docstring", "[prompt]") {
  CHECK(tool_stub(weather())
        == "def weather(city: str, days: int | None = 1, unit: Literal[\"C\", \"F\"] | None = "
           "None) -> dict:\n"
           "    \"\"\"Tells the weather.\n"
           "    Of one day.\n\n"
           "    Args:\n"
           "        city: where\n"
           "        days: how far ahead\n"
           "        unit: \n"
           "    \"\"\"");
  tool_spec bare;
  bare.name = "now";
  bare.description = "The time.";
  CHECK(tool_stub(bare) == "def now() -> Any:\n    \"\"\"The time.\"\"\"");
}

TEST_CASE("a tool is shown to a tool-calling model by words and JSON Schema", "[prompt]") {
  CHECK(tool_summary(weather())
        == "weather: Tells the weather.\n    Of one day.\n    Arguments: "
           R"({"type":"object","required":["city"],"properties":{)"
           R"("city":{"type":"string","description":"where"},)"
           R"("days":{"type":["integer","null"],"default":1,"description":"how far ahead"},)"
           R"("unit":{"type":"string","enum":["C","F"]}}})"
           "\n    Returns: object");
  tool_spec odd;
  odd.name = "odd";
  odd.parameters = ordered_json::parse(R"({"properties":{"x":{"type":"any"},
    "y":{"anyOf":[{"type":"string"}],"nullable":true},"z":{"enum":[1],"nullable":false}}})");
  CHECK(
    tool_summary(odd).find(
      R"({"properties":{"x":{},"y":{"anyOf":[{"type":"string"},{"type":"null"}]},"z":{"enum":[1]}},"type":"object"})")
    != std::string::npos);
}

TEST_CASE("JSON values are written as Python literals", "[prompt]") {
  CHECK(python_literal(ordered_json::parse(R"([null, true, 1.5, "a'b", {"k": false}])"))
        == "[None, True, 1.5, \"a'b\", {\"k\": False}]");
}

TEST_CASE("templates loop over tools as smolagents' do", "[prompt]") {
  CHECK(
    render("{% for t in tools.values() %}{{ t.name }}:{{ t.output_type }} {% endfor %}", {"tools"})
    == "weather:object final_answer:any ");
  CHECK(render("{% for t in tools.values() %}{{ t.inputs.keys() | list | length }}{% endfor %}",
               {"tools"})
        == "31");
  CHECK(render("{{ (tools.values() | list)[0].name }}", {"tools"}) == "weather");
  CHECK(render("{{ (tools.values() | list)[0].to_tool_calling_prompt() }}", {"tools"})
        == tool_summary(weather()));
  CHECK(
    render("{% if managed_agents and managed_agents.values() | list %}x{% else %}none{% endif %}",
           {"managed_agents"})
    == "none");
  CHECK(render("{% if managed_agents %}x{% endif %}", {"managed_agents"}) == "");
}

TEST_CASE("an unknown name is an error with template, line and the nearest name", "[prompt]") {
  CHECK(complaint("line one\n{{ tsk }}")
        == "test, line 2: unknown name 'tsk' (did you mean 'task'?)");
  CHECK(complaint("{% if false %}\n\n{{ nowhere }}{% endif %}")
        == "test, line 3: unknown name 'nowhere'");
  CHECK(complaint("{% for t in tools.values() %}\n{{ t.nme }}{% endfor %}")
        == "test, line 2: unknown attribute 'nme' (did you mean 'name'?)");
  CHECK(complaint("{{ task | uper }}").starts_with("test, line 1: unknown name 'uper'"));
}

TEST_CASE("a loop variable is not defined outside of its loop", "[prompt]") {
  auto what =
    complaint("{% for x in ['a'] %}{{ x }}{% endfor %}\n{% for y in [1] %}{% endfor %}{{ zz }}");
  CHECK(what == "test, line 2: unknown name 'zz'");
  auto later = complaint("{{ x }}\n{% macro m(x) %}{{ x }}{% endmacro %}");
  CHECK(later == "test, line 1, column 3: 'x' is not defined here");
}

TEST_CASE("a name that is tested or given a default may be undefined", "[prompt]") {
  CHECK(render("{% if maybe is defined %}{{ maybe }}{% else %}no{% endif %}") == "no");
  CHECK(render("{{ maybe | default('d') }}") == "d");
}

TEST_CASE("a syntax error is reported with its line", "[prompt]") {
  CHECK(complaint("a\n{% if task %}").find("line 2") != std::string::npos);
  CHECK(complaint("a\nb\n{{ task").find("line 3") != std::string::npos);
  CHECK(complaint("{% endfor %}").find("test, line 1") != std::string::npos);
  CHECK(complaint(std::string(70'000, 'x')).find("more than") != std::string::npos);
}

TEST_CASE("a task's braces are text, not a template", "[prompt]") {
  auto t = prompt_template::parse("test", "<{{task}}>", {"task"});
  REQUIRE(t);
  CHECK(t->uses("task"));
  CHECK(t->render({{}, {{"task", "{{ evil }} {% if %}"}}}) == "<{{ evil }} {% if %}>");
}

TEST_CASE("the shipped prompts render, with tools, imports, tags and instructions in them",
          "[prompt]") {
  auto o = test::options_for_tests();
  o.tools.push_back(weather());
  o.imports = {"math", "re"};
  o.instructions = "Answer in French.";
  o.code_open = "[[py";
  o.code_close = "py]]";
  auto text = test::definition_of(o)->system_prompt;
  CHECK(text.find("def weather(city: str") != std::string::npos);
  CHECK(text.find("def final_answer(answer: Any) -> Any") != std::string::npos);
  CHECK(text.find("[\"math\", \"re\"]") != std::string::npos);
  CHECK(text.find("[[py\n") != std::string::npos);
  CHECK(text.find("<code>") == std::string::npos);
  CHECK(text.ends_with("Answer in French."));
  CHECK(text.find("{{") == std::string::npos);
  CHECK(text.find("team members") == std::string::npos);
  auto& shipped = shipped_prompts();
  for (auto* part : {&shipped.initial_plan, &shipped.update_plan_pre, &shipped.update_plan_post,
                     &shipped.managed_task, &shipped.managed_report})
    CHECK(!part->empty());
}

TEST_CASE("the shipped prompts of a tool-calling agent render in both protocols", "[prompt]") {
  auto o = test::options_for_tests();
  o.kind = agent_kind::tool_calling;
  o.prompts = shipped_prompts(o.kind);
  o.tools.push_back(weather());
  o.instructions = "Answer in French.";
  auto native = test::definition_of(o)->system_prompt;
  o.calls = call_protocol::text;
  auto text = test::definition_of(o)->system_prompt;
  for (auto& prompt : {native, text}) {
    CHECK(prompt.ends_with("\n\nAnswer in French."));
    CHECK(prompt.find("{{") == std::string::npos);
    CHECK(prompt.find("team members") == std::string::npos);
  }
  CHECK(native.find("weather") == std::string::npos);  // the request has the tools
  CHECK(text.find("\n- weather: Tells the weather.\n") != std::string::npos);
  auto& shipped = shipped_prompts(agent_kind::tool_calling);
  for (auto* part : {&shipped.initial_plan, &shipped.update_plan_pre, &shipped.update_plan_post,
                     &shipped.managed_task, &shipped.managed_report})
    CHECK(!part->empty());
}

TEST_CASE("a prompt file's mistakes are named with their place", "[prompt]") {
  auto good = "system_prompt: s\nfinal_answer:\n  pre_messages: a\n  post_messages: b\n";
  REQUIRE(load_prompts(good));
  CHECK(load_prompts(good)->final_answer_post == "b");
  auto error_of = [](std::string text) {
    auto loaded = load_prompts(text);
    REQUIRE(!loaded);
    CHECK(loaded.error().code == errc::invalid_argument);
    return loaded.error().detail;
  };
  CHECK(error_of("system_prompt: s\n")
        == "prompts: key 'final_answer.pre_messages' is missing or empty");
  CHECK(
    error_of(good + std::string{"sistem_prompt: x\n"})
    == "prompts, line 5, column 1: unknown key 'sistem_prompt' (did you mean 'system_prompt'?)");
  CHECK(error_of("final_answer: 3\n")
        == "prompts, line 1, column 15: final_answer must be a mapping of names to texts");
  CHECK(error_of("system_prompt: [1]\n").find("must be a text") != std::string::npos);
  CHECK(error_of("a: [\n").find("line 2") != std::string::npos);
  CHECK(error_of("just text").find("must be a mapping") != std::string::npos);
  CHECK(error_of("").find("must be a mapping") != std::string::npos);
}

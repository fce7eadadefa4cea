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

TEST_CASE("the schema of a tool's result is told too", "[prompt]") {
  tool_spec t;
  t.name = "now";
  t.description = "The time.";
  t.output_type = "object";
  std::string schema =
    R"({"type":"object","properties":{"hour":{"type":"integer"}},"required":["hour"]})";
  t.output_schema = ordered_json::parse(schema);
  CHECK(tool_stub(t)
        == "def now() -> dict:\n    \"\"\"The time.\n\n    Returns:\n        a value of this JSON "
           "Schema, whose fields can be used directly: "
             + schema + "\n    \"\"\"");
  CHECK(tool_summary(t).ends_with("\n    Returns: object, of this JSON Schema: " + schema));
  t.output_schema = ordered_json::parse(R"({"type":"array","items":{"type":"number"}})");
  CHECK(tool_stub(t).starts_with("def now() -> list[float]:"));
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
  CHECK(load_prompts("system_prompt: s\n", shipped_prompts()));
  auto emptied = load_prompts("system_prompt: ' '\n", shipped_prompts());
  REQUIRE(!emptied);
  CHECK(emptied.error().detail == "prompts: key 'system_prompt' is missing or empty");
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

TEST_CASE("a prompt file may change any single text, and the others stay", "[prompt]") {
  struct {
    const char* yaml;
    std::string prompt_set::*changed;
  } const files[] = {
    {"system_prompt: mine\n", &prompt_set::system_prompt},
    {"final_answer:\n  pre_messages: mine\n", &prompt_set::final_answer_pre},
    {"final_answer:\n  post_messages: mine\n", &prompt_set::final_answer_post},
    {"planning:\n  initial_plan: mine\n", &prompt_set::initial_plan},
    {"planning:\n  update_plan_pre_messages: mine\n", &prompt_set::update_plan_pre},
    {"planning:\n  update_plan_post_messages: mine\n", &prompt_set::update_plan_post},
    {"managed_agent:\n  task: mine\n", &prompt_set::managed_task},
    {"managed_agent:\n  report: mine\n", &prompt_set::managed_report},
    {"context:\n  summary: mine\n", &prompt_set::context_summary},
  };
  for (auto& file : files) {
    CAPTURE(file.yaml);
    auto expected = shipped_prompts();
    expected.*file.changed = "mine";
    CHECK(load_prompts(file.yaml, shipped_prompts()).value() == expected);
  }
}

TEST_CASE("prompts in the shape of smolagents' files work as they are", "[prompt]") {
  // Written after the keys, variables and idioms of smolagents 1.27, prompts/*.yaml.
  constexpr auto yaml = R"(
system_prompt: |-
  Solve it with {{code_block_opening_tag}}code{{code_block_closing_tag}}.
  {%- for tool in tools.values() %}
  {{ tool.to_code_prompt() }}
  - {{ tool.name }}: {{ tool.description }} Takes inputs: {{tool.inputs}} Returns: {{tool.output_type}}
  {% endfor %}
  {%- if managed_agents and managed_agents.values() | list %}
  Your team:
  {%- for agent in managed_agents.values() %}
  def {{ agent.name }}(task: str, additional_args: dict[str, Any]) -> str:
      """{{ agent.description }} {% for name, info in agent.inputs.items() %}{{ name }}={{ info.type }};{% endfor %} {{ agent.output_type }}"""
  {% endfor %}
  {%- endif %}
  Imports: {{authorized_imports}}
  {%- if custom_instructions %}
  {{custom_instructions}}
  {%- endif %}
planning:
  initial_plan: |-
    Facts and plan for {{task}}
    {%- for tool in tools.values() %} {{ tool.name }}{% endfor %}
  update_plan_pre_messages: |-
    So far, for {{task}}:
  update_plan_post_messages: |-
    Beware that you have {remaining_steps} steps remaining, or {{remaining_steps}}.
managed_agent:
  task: |-
    You are '{{name}}': {{task}}
  report: |-
    {{name}} says: {{final_answer}}
final_answer:
  pre_messages: |-
    An agent got stuck:
  post_messages: |-
    Answer {{task}}
)";
  auto loaded = load_prompts(yaml, shipped_prompts());
  REQUIRE(loaded);
  auto o = test::options_for_tests();
  o.prompts = *loaded;
  o.tools.push_back(weather());
  auto definition = test::definition_of(o);
  CHECK(definition->system_prompt.find("Solve it with <code>code</code>.\ndef final_answer(")
        != std::string::npos);
  CHECK(definition->system_prompt.find("Your team") == std::string::npos);
  CHECK(definition->first_plan("T") == "Facts and plan for T final_answer weather");
  CHECK(definition->plan_post("T", 7) == "Beware that you have 7 steps remaining, or 7.");

  auto helper = weather();
  helper.name = "helper";
  helper.description = "Helps.";
  auto system = prompt_template::parse("system_prompt", loaded->system_prompt, system_variables());
  REQUIRE(system);
  auto text = system->render({{},
                              {{"code_block_opening_tag", "<"},
                               {"code_block_closing_tag", ">"},
                               {"authorized_imports", "all"},
                               {"custom_instructions", ""}},
                              {helper}});
  REQUIRE(text);
  CHECK(text->find("Your team:\ndef helper(task: str, additional_args: dict[str, Any]) -> str:\n"
                   "    \"\"\"Helps. city=string;days=")
        != std::string::npos);
  CHECK(text->find("object\"\"\"") != std::string::npos);
}

TEST_CASE("the shipped prompts render with managed agents", "[prompt]") {
  auto helper = weather();
  helper.name = "helper";
  helper.description = "Helps with the weather.";
  for (auto* set : {&shipped_prompts(), &shipped_prompts(agent_kind::tool_calling),
                    &shipped_structured_prompts()}) {
    for (auto* text : {&set->system_prompt, &set->initial_plan, &set->update_plan_post}) {
      auto names = system_variables();
      names.emplace_back("remaining_steps");
      auto parsed = prompt_template::parse("p", *text, names);
      REQUIRE(parsed);
      prompt_variables variables{{test::final_answer_spec()}, {{"remaining_steps", "3"}}, {helper}};
      for (auto& name : system_variables())
        if (name != "tools" && name != "managed_agents")
          variables.texts.emplace_back(name, "v");
      auto rendered = parsed->render(variables);
      REQUIRE(rendered);
      CHECK(rendered->find("helper") != std::string::npos);
      CHECK(rendered->find("Helps with the weather.") != std::string::npos);
    }
  }
}

TEST_CASE("a template cannot divide by zero or call itself without end", "[prompt]") {
  auto refused = [](std::string_view text) {
    auto made = prompt_template::parse("t", text, {"task"});
    return made ? std::string{} : made.error().detail;
  };
  CHECK(refused("{{ 1/0 }}").find("line 1: '/' must have a number other than 0")
        != std::string::npos);
  CHECK(refused("{{ 1 // 0 }}") != "");
  CHECK(refused("a\n{{ 1 % 0 }}").find("line 2: '%' must") != std::string::npos);
  CHECK(refused("{{ 1 / (task|length) }}") != "");
  CHECK(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")
          .find("'f' must end before it is called")
        != std::string::npos);
  CHECK(refused("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}")
        != "");
  CHECK(refused("{{ 7 // 2 }} {{ 7 % 2 }} {{ 7 / 10 }}") == "");
  CHECK(refused("{% macro f() %}x{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ g() }}")
        == "");
}

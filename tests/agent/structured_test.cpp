// Code agents whose replies are JSON.
#include "runtime/agent/structured_reply.hpp"
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

agent_options json_options() {
  auto o = options_for_tests();
  o.structured = true;
  o.prompts = shipped_structured_prompts();
  return o;
}

const std::shared_ptr<const agent_definition>& json_agent() {
  static const auto made = definition_of(json_options());
  return made;
}

model_replied json_reply(const std::string& code) {
  return reply(json{{"thought", "go on"}, {"code", code}}.dump());
}

std::string found(std::string_view reply) {
  auto code = structured_code(reply, {});
  return code ? *code : "error: " + code.error().detail;
}

}  // namespace

TEST_CASE("code is found in JSON, with what models put around it", "[structured]") {
  CHECK(found(R"json({"thought":"t","code":"x = 1\nprint(x)"})json") == "x = 1\nprint(x)");
  CHECK(found("<think>{\"code\":\"no\"}</think>{\"code\":\"yes\"}") == "yes");
  CHECK(found("```json\n{\"code\": \"a\"}\n```") == "a");
  CHECK(found("Here it is: {\"code\": \"a = {1: 2}\"} and so on") == "a = {1: 2}");
  CHECK(found("{\"thought\": \"t\", \"code\": \"a\nb\"}") == "a\nb");
  CHECK(found(R"({"code":"<code>\nx\n</code>"})") == "x");
  CHECK(found(R"({"code":"```python\nx\n```"})") == "x");
  CHECK(found(R"({"code":"s = '<code>'"})") == "s = '<code>'");
}

TEST_CASE("what is no such JSON is said", "[structured]") {
  CHECK(found("just text") == "error: there is no JSON in it");
  CHECK(found(R"({"thought":"t","code":)")
        == "error: the JSON in it is not complete: its last bracket is missing");
  CHECK(found(R"({"thought":"t"})") == "error: the JSON in it has no text \"code\"");
  CHECK(found(R"({"code":[1]})") == "error: the JSON in it has no text \"code\"");
  CHECK(found(R"({"code":" "})") == "error: its \"code\" is empty");
  CHECK(found(R"({"code":"a",})").starts_with("error: the JSON in it cannot be read: line 1"));
  CHECK(found("<code>x = {\"code\": \"y\"}</code>") == "error: it is no JSON");
}

TEST_CASE("the provider is asked for the schema, and nothing cuts the JSON (case 8)",
          "[structured]") {
  scripted_run run{json_agent()};
  run.start();
  auto& settings = *run.the<ask_model>().request.settings;
  REQUIRE(settings.output);
  CHECK(settings.output->strict);
  CHECK(settings.output->schema["required"] == ordered_json{"thought", "code"});
  CHECK(settings.output->schema["additionalProperties"] == false);
  CHECK(settings.stop.empty());
  CHECK(contains(run.request()[0]["content"], "one JSON object"));
  CHECK(!contains(run.request()[0]["content"], "<code>"));
  run.on(json_reply("print(6 * 7)"));
  CHECK(run.the<run_code>().code.code == "print(6 * 7)");
  CHECK(!run.the<run_code>().code.may_be_prose);
  CHECK(run.noted("action")["source"] == "json");
  run.on(printed("42\n"));
  CHECK(run.request()[2]["content"] == json{{"thought", "go on"}, {"code", "print(6 * 7)"}}.dump());
  run.on(json_reply("final_answer(42)")).on(answered(42, "42"));
  CHECK(run.the<finish>().end == run_end::success);
}

TEST_CASE("a reply that is not that JSON is read as text", "[structured]") {
  scripted_run run{json_agent()};
  run.start().on(code("print(1)"));
  CHECK(run.the<run_code>().code.code == "print(1)");
  CHECK(run.noted("action")["source"] == "tags");
  run.on(printed("1\n")).on(reply("```python\nprint({'a': 2})\n```"));
  CHECK(run.the<run_code>().code.code == "print({'a': 2})");
  run.on(printed("2\n")).on(reply("print(3)"));
  CHECK(run.the<run_code>().code.may_be_prose);
}

TEST_CASE("JSON that holds no code is no Python either; the model is told the form (case 8)",
          "[structured]") {
  scripted_run run{json_agent()};
  run.start().on(reply(R"({"thought": "the final answer is 3", "Code": "x"})"));
  CHECK(!run.has<run_code>());
  auto text = run.last_content();
  CHECK(text.starts_with("Error:\nYour reply held no code that could be run: the JSON in it has no "
                         "text \"code\".\nReply with one JSON object"));
  CHECK(contains(text, "\"code\": \"final_answer(\\\"your answer here\\\")\"}"));
  run.on(reply("no idea")).on(ended(snippet_end::not_code));
  CHECK(contains(run.last_content(), "there is no JSON in it"));
}

TEST_CASE("a provider that takes no schema is asked without, once and for all", "[structured]") {
  scripted_run run{json_agent()};
  run.start().on(model_failed{{failure_class::bad_request,
                               "HTTP 400: 'response_format' of type json_schema is not supported",
                               {},
                               1}});
  CHECK(run.noted("output_schema_refused")["step"] == 1);
  CHECK(!run.the<ask_model>().request.settings->output);
  CHECK(run.agent.step() == 1);
  run.on(json_reply("print(1)")).on(printed("1"));
  CHECK(!run.the<ask_model>().request.settings->output);
  run.on(model_failed{{failure_class::bad_request, "schema again", {}, 1}});
  CHECK(run.the<finish>().end == run_end::error);
  scripted_run other{json_agent()};
  other.start().on(model_failed{{failure_class::bad_request, "HTTP 404: no such model", {}, 1}});
  CHECK(other.the<finish>().end == run_end::error);
}

TEST_CASE("agents that call tools have no structured replies", "[structured]") {
  auto o = tool_options();
  o.structured = true;
  auto defined = define_agent(o);
  REQUIRE(!defined);
  CHECK(contains(defined.error().detail, "structured is for code agents"));
}

TEST_CASE("tags are literal text, also where they would mean something as a pattern (case 1)",
          "[structured]") {
  auto o = options_for_tests();
  o.code_open = "[.*(py)+]";
  o.code_close = "[/^$]";
  scripted_run run{o};
  run.start();
  CHECK(run.the<ask_model>().request.settings->stop.back() == "[/^$]");
  run.on(reply("First.\n[.*(py)+]\na = 1\n[/^$]\nthen\n[.*(py)+]  b = 2  [/^$]"));
  CHECK(run.the<run_code>().code.code == "a = 1\n\nb = 2");
}

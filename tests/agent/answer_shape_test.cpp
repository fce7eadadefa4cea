// Answers that must have a form.
#include "runtime/agent/answer_shape.hpp"
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr auto person =
  R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},)"
  R"("tags":{"type":"array","items":{"type":"string"},"default":[]}},)"
  R"("required":["name","age"],"additionalProperties":false})";

answer_shape shape(std::string_view schema) {
  auto made = answer_shape::make(ordered_json::parse(schema));
  REQUIRE(made);
  return *std::move(made);
}

agent_options typed(agent_options o, std::string_view schema = person) {
  o.answer_schema = ordered_json::parse(schema);
  return o;
}

const json misfit{{"name", "Ann"}, {"age", "old"}};
const json fitting{{"name", "Ann"}, {"age", 3}};

}  // namespace

TEST_CASE("an answer is made to fit as far as nothing is lost", "[answer_shape]") {
  value answer{{{"name", "Ann"}, {"age", "3"}}, "{'name': 'Ann', 'age': '3'}"};
  REQUIRE(shape(person).fit(answer));
  CHECK(answer
        == value{{{"name", "Ann"}, {"age", 3}, {"tags", json::array()}},
                 R"({"age":3,"name":"Ann","tags":[]})"});
  value tuple{{{"__type__", "tuple"}, {"data", {1, 2}}}, "(1, 2)"};
  REQUIRE(shape(R"({"type":"array","items":{"type":"integer"}})").fit(tuple));
  CHECK(tuple == value{{1, 2}, "[1,2]"});
  value text{"Graz", "Graz"};
  REQUIRE(shape(R"({"type":"string"})").fit(text));
  CHECK(text == value{"Graz", "Graz"});
  value half{3.5, "3.5"};
  CHECK(!shape(R"({"type":"integer"})").fit(half));
  CHECK(half == value{3.5, "3.5"});
  value keyed{{{"__type__", "x"}}, ""};
  keyed.tagged = to_tagged(json{{"__type__", "x"}});
  REQUIRE(shape(R"({"type":"object"})").fit(keyed));
  CHECK(to_plain(keyed.tagged) == json{{"__type__", "x"}});
}

TEST_CASE("what is wrong with an answer is said by its place, with the schema", "[answer_shape]") {
  value answer{misfit, ""};
  auto r = shape(person).fit(answer);
  REQUIRE(!r);
  CHECK(contains(r.error().detail, "'age' is a string (\"old\") but must be integer"));
  CHECK(contains(r.error().detail, person));
}

TEST_CASE("a reply's text is read as JSON where that fits, else as a text", "[answer_shape]") {
  auto number = shape(R"({"type":"integer"})");
  CHECK(number.read(" 42 ").tagged == 42);
  CHECK(number.read(R"({"answer": 42})").tagged == 42);
  CHECK(number.read("The answer is 42.").tagged == "The answer is 42.");
  auto text = shape(R"({"type":"string"})");
  CHECK(text.read("42").tagged == "42");
  CHECK(text.read("\"quoted\"").tagged == "quoted");
  CHECK(text.read("a {b}").tagged == "a {b}");
  CHECK(shape(person).read("```json\n{\"name\":\"A\",\"age\":1}\n```").tagged
        == json{{"name", "A"}, {"age", 1}});
}

TEST_CASE("providers get an object, and strictness only where their rules allow it",
          "[answer_shape]") {
  // Source: OpenAI guide, "Structured model outputs": the root is an object; in strict mode all
  // members are required and no others are allowed.
  auto wrapped = shape(R"({"type":"integer"})").output();
  CHECK(wrapped.strict);
  CHECK(wrapped.schema["properties"]["answer"]["type"] == "integer");
  CHECK(wrapped.schema["additionalProperties"] == false);
  auto loose = shape(person).output();
  CHECK(!loose.strict);  // tags need not be there
  CHECK(loose.schema == ordered_json::parse(person));
  CHECK(shape(R"({"type":"object","properties":{"a":{"type":"null"}},"required":["a"],)"
              R"("additionalProperties":false})")
          .output()
          .strict);
  auto list =
    shape(R"({"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"type":"string"}}})")
      .output();
  CHECK(list.schema["$defs"]["x"]["type"] == "string");
  CHECK(!list.schema["properties"]["answer"].contains("$defs"));
}

TEST_CASE("the tool that ends the run has the form in its schema and its words", "[answer_shape]") {
  auto tool = final_answer_spec();
  shape(person).tell(tool);
  CHECK(contains(tool.description, person));
  auto& answer = tool.parameters["properties"]["answer"];
  CHECK(answer["properties"]["age"]["type"] == "integer");
  CHECK(answer["description"] == "the answer");
  auto rooted = final_answer_spec();
  shape(R"({"type":"object","properties":{"next":{"$ref":"#"}}})").tell(rooted);
  CHECK(!rooted.parameters["properties"]["answer"].contains("properties"));
  CHECK(contains(rooted.description, R"("$ref":"#")"));
}

TEST_CASE("a schema that is none is an error of the definition", "[answer_shape]") {
  for (auto* bad : {"[1]", R"({"type":3})", R"({"$ref":"#"})"}) {
    auto defined = define_agent(typed(options_for_tests(), bad));
    REQUIRE(!defined);
    CHECK(defined.error().code == errc::invalid_argument);
    CHECK(defined.error().detail.starts_with("answer_schema: "));
  }
}

TEST_CASE("the model is told the form, and an answer of another is asked for again",
          "[answer_shape]") {
  scripted_run run{typed(options_for_tests())};
  run.start();
  std::string system = run.request()[0]["content"];
  CHECK(contains(system, "def final_answer(answer: dict)"));
  CHECK(contains(system, "The answer must have the form of this JSON Schema: {\"type\""));
  run.on(code("final_answer(x)")).on(answered(misfit, "{}"));
  CHECK(run.noted("final_answer")["accepted"] == false);
  auto text = run.last_content();
  CHECK(contains(text, "Your final answer was not accepted: it does not have the form"));
  CHECK(contains(text, "'age' is a string"));
  run.on(code("final_answer(y)")).on(answered(fitting, "{}"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().answer->text == R"({"age":3,"name":"Ann","tags":[]})");
  CHECK(run.noted("final_answer")["text"] == run.the<finish>().answer->text);
}

TEST_CASE("one wrong form more than the retries ends the run as error", "[answer_shape]") {
  auto o = typed(options_for_tests());
  o.answer_retries = 1;
  scripted_run run{o};
  run.start().on(code("final_answer(1)")).on(answered(misfit, "{}"));
  CHECK(run.has<ask_model>());
  run.on(code("final_answer(2)")).on(answered(misfit, "{}"));
  auto& end = run.the<finish>();
  CHECK(end.end == run_end::error);
  CHECK(
    end.error.starts_with("2 answers were not of the form that is asked for; the last: it does"));
  CHECK(!end.answer);
}

TEST_CASE("checks see the answer that was made to fit, and refuse without using up retries",
          "[answer_shape]") {
  auto o = typed(options_for_tests(), R"({"type":"integer"})");
  o.answer_retries = 0;
  o.checks = {{"big", [](const value& v) -> result<void> {
                 return v.tagged == 30 ? result<void>{} : fail(errc::denied, "too small");
               }}};
  scripted_run run{o};
  run.start().on(code("final_answer('3')")).on(answered("3", "3"));
  CHECK(contains(run.last_content(), "the check 'big' failed: too small"));
  run.on(code("final_answer('30')")).on(answered("30", "30"));
  CHECK(run.the<finish>().answer == value{30, "30"});
}

TEST_CASE("a call's answer is held against the form too", "[answer_shape]") {
  auto o = typed(tool_options());
  o.answer_retries = 1;
  scripted_run run{o};
  run.start();
  auto& tools = run.the<ask_model>().request.settings->tools;
  CHECK(tools[0].parameters["properties"]["answer"]["properties"].contains("age"));
  run.on(answer_call(misfit)).on(returned(1, misfit));
  CHECK(contains(run.last_content(), "'age' is a string"));
  CHECK(run.request().back()["role"] == "tool");
  auto branch = run;
  run.on(answer_call(fitting)).on(returned(2, fitting));
  CHECK(run.the<finish>().end == run_end::success);
  branch.on(answer_call(misfit)).on(returned(2, misfit));
  CHECK(branch.the<finish>().end == run_end::error);
}

TEST_CASE("the forced answer is asked for by the schema, and again when it does not fit",
          "[answer_shape]") {
  auto o = typed(options_for_tests());
  o.max_steps = 1;
  o.answer_retries = 1;
  scripted_run run{o};
  run.start("T").on(code("x")).on(printed(""));
  REQUIRE(run.the<ask_model>().request.settings->output);
  CHECK(run.the<ask_model>().request.settings->output->schema == ordered_json::parse(person));
  run.on(reply(misfit.dump()));
  auto again = run.request();
  CHECK(again[again.size() - 2] == json{{"role", "assistant"}, {"content", misfit.dump()}});
  CHECK(contains(again.back()["content"], "'age' is a string"));
  CHECK(run.the<ask_model>().request.settings->output);
  auto branch = run;
  run.on(reply(fitting.dump()));
  CHECK(run.the<finish>().end == run_end::max_steps);
  CHECK(run.the<finish>().answer->tagged["age"] == 3);
  branch.on(reply("no idea"));
  CHECK(branch.the<finish>().end == run_end::max_steps);
  CHECK(!branch.the<finish>().answer);
  CHECK(contains(branch.the<finish>().error, "the forced answer was refused: it does not have"));
}

TEST_CASE("a provider that takes no schema for the forced answer is asked without",
          "[answer_shape]") {
  auto o = typed(options_for_tests());
  o.max_steps = 1;
  scripted_run run{o};
  run.start("T").on(code("x")).on(printed(""));
  run.on(model_failed{{failure_class::bad_request, "Invalid schema for response_format", {}, 1}});
  CHECK(!run.the<ask_model>().request.settings->output);
  run.on(reply(fitting.dump()));
  CHECK(run.the<finish>().answer);
}

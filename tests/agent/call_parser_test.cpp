#include "runtime/agent/call_parser.hpp"
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <ctime>

using namespace troupe;
using namespace troupe::test;

namespace {

wanted_call only(std::string_view text) {
  CAPTURE(text);
  auto found = calls_in_text(text);
  REQUIRE(found.calls.size() == 1);
  return found.calls.front();
}

std::string complaint(std::string_view text) {
  CAPTURE(text);
  auto found = calls_in_text(text);
  CHECK(found.calls.empty());
  return found.error;
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

TEST_CASE("text before and after one JSON object does not matter (case 9)", "[call_parser]") {
  for (auto text : {
         R"({"name": "f", "arguments": {"a": 1}})",
         R"(Thought: I call f. {"name": "f", "arguments": {"a": 1}} Now I wait.)",
         "Thought: go\nAction:\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n",
         "**Action:** {\"name\": \"f\", \"arguments\": {\"a\": 1}}",
         "```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```",
         "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
         R"(The set {x, y} and [this](link) first: {"name": "f", "arguments": {"a": 1}})",
         R"({"name": "f", "arguments": {"a": 1}}}})",
       }) {
    auto call = only(text);
    CHECK(call.tool == "f");
    CHECK(call.arguments == json{{"a", 1}});
    CHECK(call.error.empty());
  }
}

TEST_CASE("a line break inside a JSON text is taken (case 9)", "[call_parser]") {
  CHECK(only("{\"name\": \"f\", \"arguments\": {\"a\": \"one\ntwo\tthree\"}}").arguments
        == json{{"a", "one\ntwo\tthree"}});
  CHECK(only("{\"name\": \"f\",\n\t\"arguments\": {\"a\": \"say \\\"x\\\"\n}\"}}").arguments
        == json{{"a", "say \"x\"\n}"}});
}

TEST_CASE("without braces there is no call and nothing to complain about (case 10)",
          "[call_parser]") {
  CHECK(complaint("I think the answer is 5.").empty());
  CHECK(complaint("").empty());
  CHECK(complaint("[1, 2] and [x](y)").empty());
}

TEST_CASE("broken JSON is named with its spot (case 10)", "[call_parser]") {
  CHECK(contains(complaint(R"({"name": 'f', "arguments": {}})"), "line 1, column 10"));
  CHECK(contains(complaint(R"({"name": "f", "arguments": {"a": 1})"), "last bracket is missing"));
  CHECK(contains(complaint(R"({name: "f"})"), "cannot be read"));
}

TEST_CASE("a name that is missing is named with the keys that are there (case 11)",
          "[call_parser]") {
  CHECK(complaint(R"({"query": "x", "limit": 3})")
        == "the JSON in it names no tool: it has the keys limit, query, and \"name\" is missing");
  CHECK(contains(complaint(R"({"name": 7})"), "names no tool"));
}

TEST_CASE("arguments may be missing, JSON in a text, or a lone value (case 11)", "[call_parser]") {
  CHECK(only(R"({"name": "f"})").arguments.is_null());
  CHECK(only(R"({"name": "f", "arguments": "{\"a\": 1}"})").arguments == json{{"a", 1}});
  CHECK(only(R"({"name": "f", "arguments": "plain"})").arguments == "plain");
  CHECK(only(R"({"name": "f", "arguments": 3})").arguments == 3);
  CHECK(only(R"({"name": "f", "arguments": ""})").arguments == json::object());
  auto broken = only(R"({"name": "f", "arguments": "{\"a\": "})");
  CHECK(contains(broken.error, "the arguments are not JSON"));
  CHECK(broken.shown == "{\"a\": ");
}

TEST_CASE("the key names of other dialects are understood", "[call_parser]") {
  for (auto text :
       {R"({"tool": "f", "args": {"a": 1}})", R"({"tool_name": "f", "input": {"a": 1}})",
        R"({"action": "f", "action_input": {"a": 1}})",
        R"({"function": "f", "parameters": {"a": 1}})",
        R"({"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}})",
        R"({"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": {"a": 1}}}]})"}) {
    auto call = only(text);
    CHECK(call.tool == "f");
    CHECK(call.arguments == json{{"a", 1}});
  }
}

TEST_CASE("several calls are taken in their order, as a list or one by one", "[call_parser]") {
  for (auto text : {R"([{"name": "f", "arguments": 1}, {"name": "g", "arguments": 2}])",
                    "{\"name\": \"f\", \"arguments\": 1}\n{\"name\": \"g\", \"arguments\": 2}"}) {
    auto found = calls_in_text(text);
    REQUIRE(found.calls.size() == 2);
    CHECK(found.calls[0].tool == "f");
    CHECK(found.calls[1].arguments == 2);
  }
}

TEST_CASE("a broken call beside sound ones is told, not forgotten", "[call_parser]") {
  auto found = calls_in_text(R"({"name": "f"} {"name": "g", "arguments": {'a': 1}})");
  REQUIRE(found.calls.size() == 2);
  CHECK(found.calls[0].error.empty());
  CHECK(contains(found.calls[1].error, "cannot be read"));
  CHECK(calls_in_text(R"({"name": "f"} and a set {x})").calls.size() == 1);
}

TEST_CASE("where a line begins with Action, JSON before it is no call", "[call_parser]") {
  CHECK(only("The row {\"name\": \"Bob\"} is right.\nAction:\n{\"name\": \"f\"}").tool == "f");
  CHECK(only("{\"name\": \"f\"}\nAction: as above").tool == "f");
  CHECK(only("My Action: {\"name\": \"f\"}").tool == "f");
}

TEST_CASE("deep and unclosed brackets cost linear time and end as an error", "[call_parser]") {
  constexpr std::size_t size = 256u << 10;
  auto began = cpu_seconds();
  CHECK(contains(complaint(std::string(size, '{')), "last bracket is missing"));
  CHECK(contains(complaint(std::string(size, '{') + std::string(size, '}')), "nested deeper"));
  std::string prose;
  while (prose.size() < size)
    prose += "{x} [y] ";
  CHECK(only(prose + R"({"name": "f"})").tool == "f");
  CHECK(cpu_seconds() - began < 5);
}

TEST_CASE("native arguments are JSON or nothing", "[call_parser]") {
  CHECK(decoded_arguments("") == json::object());
  CHECK(decoded_arguments(R"({"a":[1]})") == json{{"a", {1}}});
  CHECK(decoded_arguments(R"("{\"a\":1}")") == json{{"a", 1}});
  for (auto bad : {"plain", R"({"a":1)", R"("{\"a\":1")"}) {
    auto r = decoded_arguments(bad);
    REQUIRE(!r);
    CHECK(r.error().code == errc::corrupt);
  }
}

TEST_CASE("without native calls the prompt has the format and the tools", "[tool_text]") {
  scripted_run run{plain_tool_agent(call_protocol::text)};
  run.start("Who?");
  auto& settings = *run.the<ask_model>().request.settings;
  CHECK(settings.tools.empty());
  CHECK(settings.stop == std::vector<std::string>{"Observation:"});
  auto prompt = run.request()[0]["content"].get<std::string>();
  CHECK(contains(prompt, "Action:\n{\"name\": \"name_of_the_tool\""));
  CHECK(
    contains(prompt, "- search: Finds pages.\n    Arguments: {\"type\":\"object\",\"properties\""));
  CHECK(!contains(prompt, "{{"));
}

TEST_CASE("a call in the text runs, and its result is a user message", "[tool_text]") {
  scripted_run run{plain_tool_agent(call_protocol::text)};
  auto said = "Thought: look.\nAction:\n{\"name\": \"search\", \"arguments\": {\"query\": \"x\"}}";
  run.start().on(reply(said));
  CHECK(run.the<call_tool>().arguments == json{{"query", "x"}});
  run.on(returned(1, {{"hits", 2}}));
  auto messages = run.request();
  CHECK(messages[2] == json{{"role", "assistant"}, {"content", said}});
  CHECK(messages[3] == json{{"role", "user"}, {"content", "Observation:\n{\"hits\":2}"}});
  run.on(reply("Action: {\"name\": \"final_answer\", \"arguments\": {\"answer\": [1]}}"));
  run.on(returned(2, json::array({1})));
  CHECK(run.the<finish>().answer == value{json::array({1}), "[1]"});
}

TEST_CASE("several calls in the text come back in one message, each by its tool's name",
          "[tool_text]") {
  scripted_run run{plain_tool_agent(call_protocol::text)};
  run.start().on(reply(R"([{"name": "search", "arguments": {"query": "a"}},
                           {"name": "read", "arguments": {}}])"));
  run.on(returned(2, "page")).on(failed(1, "down", errc::unavailable));
  CHECK(run.last_content().starts_with(
    "Observation:\nsearch:\nError:\nunavailable: down\nThe call was search({\"query\":\"a\"})."));
  CHECK(run.last_content().ends_with("\n\nread:\npage"));
}

TEST_CASE("a reply without a call is told the format, and how to answer if it meant to",
          "[tool_text]") {
  scripted_run run{plain_tool_agent(call_protocol::text)};
  run.start().on(reply("The final answer is 5."));
  CHECK(
    run.last_content()
    == "Error:\nYour reply called no tool.\nWrite a short thought, then the call as JSON, like "
       "this:\nAction:\n{\"name\": \"name_of_the_tool\", \"arguments\": {\"argument\":\"value\"}}"
       "\nIf you meant to give your final answer, give it by a call:\nAction:\n{\"name\": "
       "\"final_answer\", \"arguments\": {\"answer\":\"your answer here\"}}");
  auto cut = reply(R"(Action: {"name": "search", "argu)");
  cut.reply.finish_reason = "length";
  run.on(cut);
  CHECK(contains(run.last_content(), "reached its greatest length"));
}

TEST_CASE("a result that the model makes up is no result, and what follows it no call",
          "[tool_text]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(
    reply("Action: {\"name\": \"search\", \"arguments\": {\"query\": \"Observation:\"}}\n"
          "Observation: found\nAction: {\"name\": \"final_answer\"}"));
  CHECK(run.the<call_tool>().tool == "search");
  run.on(returned(1, "nothing"));
  CHECK(run.request()[2]["content"].get<std::string>().ends_with("\"Observation:\"}}\n"));
  run.on(reply("I have no call.\nObservation: so what"));
  CHECK(run.request()[4]["content"] == "I have no call.\nObservation: so what");
}

TEST_CASE("text of any kind ends as calls or as a complaint", "[call_parser]") {
  const std::string_view pieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     "\"",
                                     "\\",
                                     ":",
                                     ",",
                                     "1",
                                     "name",
                                     "\n",
                                     " ",
                                     "Action:",
                                     "f",
                                     "\xC3",
                                     "null",
                                     "{}",
                                     "\"name\": \"f\"",
                                     "\"arguments\": "};
  std::uint64_t state = 88172645463325252u;
  auto draw = [&state] {  // xorshift64, Marsaglia 2003
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  std::size_t calls = 0, complaints = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = draw() % 24; n > 0; --n)
      text += pieces[draw() % std::size(pieces)];
    auto found = calls_in_text(text);
    calls += found.calls.size();
    complaints += found.error.empty() ? 0 : 1;
    for (auto& call : found.calls)
      CHECK((call.error.empty() || call.arguments.is_null()));
    (void)decoded_arguments(text);
  }
  CHECK(calls > 10);
  CHECK(complaints > 1'000);
}

TEST_CASE("a call in a think block is a thought, not a call", "[tool_text]") {
  scripted_run run{plain_tool_agent(call_protocol::text)};
  run.start().on(reply("<think>{\"name\": \"final_answer\"}</think>Hm."));
  CHECK(run.all<call_tool>().empty());
  CHECK(run.request()[2]["content"] == "Hm.");
}

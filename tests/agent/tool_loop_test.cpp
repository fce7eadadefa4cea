// The tool-calling agent with the providers' own protocol. Case numbers are those of smolagents'
// behaviour that we keep, or better (D).
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <functional>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("a tool-calling run asks with its tools and no stop sequences", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start("Who?");
  auto& settings = *run.the<ask_model>().request.settings;
  CHECK(settings.stop.empty());
  REQUIRE(settings.tools.size() == 2);
  CHECK(settings.tools[1].name == "search");
  CHECK(settings.choice.how == tool_choice::mode::required);
  auto messages = run.request();
  REQUIRE(messages.size() == 2);
  CHECK(contains(messages[0]["content"], "You solve tasks by calling tools"));
  CHECK(!contains(messages[0]["content"], "Action:"));
  CHECK(messages[1]["content"] == "New task:\nWho?");
  auto lenient = tool_options();
  lenient.choice = tool_choice::mode::automatic;
  scripted_run other{lenient};
  CHECK(other.start().the<ask_model>().request.settings->choice.how
        == tool_choice::mode::automatic);
}

TEST_CASE("a call's result is its observation, with native roles and ids (case 27)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("c7", "search", R"({"query": "Graz"})")}, "I look it up."));
  auto& wanted = run.the<call_tool>();
  CHECK(wanted.tool == "search");
  CHECK(wanted.arguments == json{{"query", "Graz"}});
  CHECK(run.noted("action") == json::parse(R"({"step": 1, "source": "native",
                           "calls": [{"id": "c7", "tool": "search", "call": 1}]})"));
  run.on(returned(1, "a town"));
  auto messages = run.request();
  REQUIRE(messages.size() == 4);
  CHECK(messages[2]
        == json::parse(R"({"role": "assistant", "content": "I look it up.", "tool_calls": [
             {"id": "c7", "type": "function",
              "function": {"name": "search", "arguments": "{\"query\": \"Graz\"}"}}]})"));
  CHECK(messages[3]
        == json::parse(R"({"role": "tool", "tool_call_id": "c7", "content": "a town"})"));
  CHECK(run.noted("observation") == json{{"step", 1}, {"text", "a town"}, {"is_error", false}});
  run.on(answer_call("Graz")).on(returned(2, "Graz"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().answer == value{"Graz", "Graz"});
  CHECK(run.the<finish>().turns == 2);
  CHECK(run.noted("final_answer")["accepted"] == true);
}

TEST_CASE("results that are no text are JSON; an empty one is said to be empty", "[tool_loop]") {
  for (auto& [given, read] : std::vector<std::pair<json, std::string>>{
         {{{"a", {1, nullptr}}}, R"({"a":[1,null]})"}, {true, "true"}, {"", "(an empty text)"}}) {
    scripted_run run{plain_tool_agent()};
    run.start().on(search_for("x")).on(returned(1, given));
    CHECK(run.last_content() == read);
  }
}

TEST_CASE("an empty list of calls is a reply without calls (case 27)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(reply("I am thinking."));
  CHECK(run.all<call_tool>().empty());
  CHECK(run.last_content().starts_with("Error:\nYour reply called no tool."));
  CHECK(contains(run.last_content(), "call final_answer with it"));
  CHECK(run.noted("observation")["is_error"] == true);
  CHECK(run.agent.step() == 2);
  run.on(reply(""));
  CHECK(run.request()[4]["content"] == "(empty reply)");
}

TEST_CASE("parallel calls are out at once and answered in the order they were made (case 28, D)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("call_10", "search", R"({"query":"a"})"),
                        call("call_9", "search", R"({"query":"b"})"),
                        call("call_1", "search", R"({"query":"c"})")}));
  REQUIRE(run.all<call_tool>().size() == 3);
  CHECK(run.all<call_tool>()[1].arguments == json{{"query", "b"}});
  for (auto late : {3u, 1u}) {
    run.on(returned(late, "result " + std::to_string(late)));
    REQUIRE(run.commands.size() == 1);
    CHECK(run.has<await_more>());
  }
  run.on(returned(2, "result 2"));
  auto messages = run.request();
  REQUIRE(messages.size() == 6);
  std::string order;
  for (std::size_t i = 3; i < 6; ++i)
    order += messages[i]["tool_call_id"].get<std::string>() + "="
             + messages[i]["content"].get<std::string>() + " ";
  CHECK(order == "call_10=result 1 call_9=result 2 call_1=result 3 ");
  CHECK(run.noted("observation")["text"]
        == "search:\nresult 1\n\nsearch:\nresult 2\n\nsearch:\nresult 3");
}

TEST_CASE("calls with one id are told apart, and both are answered (case 28, D)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("x", "search", R"({"query":"a"})"), call("x_2", "search", "{}"),
                        call("x", "search", R"({"query":"b"})"), call("", "search", "{}")}));
  for (auto id : {1u, 2u, 3u, 4u})
    run.on(returned(id, id));
  auto messages = run.request();
  std::vector<std::string> ids{"x", "x_2", "x_3", "call_3"};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(messages[2]["tool_calls"][i]["id"] == ids[i]);
    CHECK(messages[3 + i]["tool_call_id"] == ids[i]);
    CHECK(messages[3 + i]["content"] == std::to_string(i + 1));
  }
}

TEST_CASE("one failing call keeps its siblings' results (case 28, D)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(
    calls({call("a", "search", R"({"query":"x"})"), call("b", "search", R"({"query":"y"})")}));
  run.on(failed(1, "search: the index is down")).on(returned(2, "found"));
  auto messages = run.request();
  REQUIRE(messages.size() == 5);
  CHECK(contains(messages[3]["content"], "the index is down"));
  CHECK(messages[4]["content"] == "found");
  CHECK(run.noted("observation")["is_error"] == true);
}

TEST_CASE("a failed call is told with its arguments, kind and message (case 29)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(search_for("Graz"));
  run.on(failed(1, "search: 'query' is too short", errc::invalid_argument));
  CHECK(run.last_content().starts_with(
    "Error:\ninvalid_argument: search: 'query' is too short\nThe call was "
    "search({\"query\":\"Graz\"}).\n"));
}

TEST_CASE("an unknown tool is asked of the host, whose answer names those that exist (case 29)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("a", "serch the web!", "{}")}));
  CHECK(run.the<call_tool>().tool == "serch the web!");
  run.on(failed(1, "there is no tool 'serch the web!'; there is: search", errc::not_found));
  CHECK(contains(run.last_content(), "not_found: there is no tool"));
  // Providers refuse a history with such a name in it.
  CHECK(run.request()[2]["tool_calls"][0]["function"]["name"] == "serch_the_web_");
}

TEST_CASE("final_answer beside another call is refused, and the other carried out (case 30)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(
    calls({call("a", "final_answer", R"({"answer":1})"), call("b", "search", R"({"query":"x"})")}));
  CHECK(run.the<call_tool>().tool == "search");
  CHECK(contains(run.noted("action")["calls"][0]["refused"], "beside other calls"));
  run.on(returned(1, "found"));
  CHECK(!run.has<finish>());
  auto messages = run.request();
  CHECK(contains(messages[3]["content"], "final_answer was called beside other calls"));
  CHECK(messages[4]["content"] == "found");
}

TEST_CASE("two final answers at once are none (case 30)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls(
    {call("a", "final_answer", R"({"answer":1})"), call("b", "final_answer", R"({"answer":2})")}));
  CHECK(!run.has<finish>());
  CHECK(run.all<call_tool>().empty());
  CHECK(run.has<ask_model>());
  CHECK(run.agent.step() == 2);
}

TEST_CASE("arguments that are not JSON are not carried out, and go back as an object (case 10)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("a", "search", R"({"query": "cut sho)")}));
  CHECK(run.all<call_tool>().empty());
  CHECK(contains(run.last_content(), "the arguments are not JSON: line 1, column 19"));
  CHECK(contains(run.last_content(), "The call was search({\"query\": \"cut sho)."));
  CHECK(run.request()[2]["tool_calls"][0]["function"]["arguments"] == "{}");
}

TEST_CASE("arguments in a text are read, and a lone value is passed on (case 11)", "[tool_loop]") {
  struct {
    std::string given;
    json meant;
    std::string back;
  } const known[] = {
    {R"("{\"query\": \"x\"}")", {{"query", "x"}}, R"({"query":"x"})"},
    {R"("Graz")", "Graz", "{}"},
    {"3", 3, "{}"},
    {"null", nullptr, "{}"},
    {" ", json::object(), "{}"},
    {R"("[not json")", json(), "{}"},
  };
  for (auto& k : known) {
    CAPTURE(k.given);
    scripted_run run{plain_tool_agent()};
    run.start().on(calls({call("a", "search", k.given)}));
    if (k.given == R"("[not json")") {
      CHECK(run.all<call_tool>().empty());
    } else {
      CHECK(run.the<call_tool>().arguments == k.meant);
      run.on(returned(1, "r"));
    }
    CHECK(run.request()[2]["tool_calls"][0]["function"]["arguments"] == k.back);
  }
}

TEST_CASE("nothing stands for a text argument but the text itself (case 32, D)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start("the task").on(search_for("task"));
  CHECK(run.the<call_tool>().arguments == json{{"query", "task"}});
}

TEST_CASE("a failing model ends a tool-calling run with the failure's line (case 14)",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(model_failed{{failure_class::auth, "401: check the key", {}, 2}});
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "401: check the key");
  CHECK(run.agent.messages().size() == 2);
}

TEST_CASE("at max steps the forced answer is asked for with tools named and none allowed (case 16)",
          "[tool_loop]") {
  auto o = tool_options();
  o.max_steps = 1;
  scripted_run run{o};
  run.start("T").on(search_for("x")).on(returned(1, "r"));
  auto& settings = *run.the<ask_model>().request.settings;
  CHECK(settings.tools.size() == 2);
  CHECK(settings.choice.how == tool_choice::mode::none);
  auto messages = run.request();
  CHECK(messages[1]["content"] == "New task:\nT");
  CHECK(messages[3]["tool_call_id"] == "c1");
  CHECK(contains(messages.back()["content"], "Answer this task now"));
  run.on(reply("It is r."));
  CHECK(run.the<finish>().end == run_end::max_steps);
  CHECK(run.the<finish>().answer == value{"It is r.", "It is r."});
  CHECK(run.noted("final_answer")["forced"] == true);
}

TEST_CASE("a forced answer that comes as a call is taken, and checked (case 16, D)",
          "[tool_loop]") {
  auto o = tool_options();
  o.max_steps = 1;
  o.checks = {{"positive", [](const value& v) -> result<void> {
                 return v.tagged > 0 ? result<void>{} : fail(errc::denied, "not above 0");
               }}};
  auto at_the_end = [&] {
    scripted_run run{o};
    run.start().on(search_for("x")).on(returned(1, "r"));
    return run;
  };
  auto native = at_the_end();
  native.on(answer_call(3));
  CHECK(native.the<call_tool>().tool == "final_answer");
  native.on(returned(2, 3));
  CHECK(native.the<finish>().end == run_end::max_steps);
  CHECK(native.the<finish>().answer == value{3, "3"});
  auto written = at_the_end();
  written.on(reply(R"(Action: {"name": "final_answer", "arguments": {"answer": 3}})"));
  CHECK(written.on(returned(2, 3)).the<finish>().answer == value{3, "3"});
  auto refused = at_the_end();
  refused.on(answer_call(-1)).on(returned(2, -1));
  CHECK(!refused.the<finish>().answer);
  CHECK(contains(refused.the<finish>().error, "the check 'positive' failed: not above 0"));
  auto broken = at_the_end();
  broken.on(answer_call(3)).on(failed(2, "final_answer: wrong arguments"));
  CHECK(broken.the<finish>().end == run_end::max_steps);
  CHECK(contains(broken.the<finish>().error, "wrong arguments"));
  auto another = at_the_end();  // what is asked for is an answer: nothing else is called
  another.on(search_for("y"));
  CHECK(another.all<call_tool>().empty());
  CHECK(contains(another.the<finish>().error, "the forced answer was empty"));
}

TEST_CASE("a refused answer is an error that names the check, and the run goes on (case 17)",
          "[tool_loop]") {
  auto o = tool_options();
  o.checks = {{"positive", [](const value& v) -> result<void> {
                 return v.tagged > 0 ? result<void>{} : fail(errc::denied, "not above 0");
               }}};
  scripted_run run{o};
  run.start().on(answer_call(-1)).on(returned(1, -1));
  CHECK(!run.has<finish>());
  CHECK(run.last_content().starts_with(
    "Error:\nYour final answer was not accepted: the check 'positive' failed"));
  CHECK(run.request().back()["tool_call_id"] == "end");
  CHECK(run.noted("final_answer")["accepted"] == false);
  run.on(answer_call(2)).on(returned(2, 2));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().answer->tagged == 2);
}

TEST_CASE("an interrupt ends the run wherever it is, and keeps what was done (case 18)",
          "[tool_loop]") {
  std::vector<std::function<void(scripted_run&)>> stages{
    [](scripted_run& r) { r.start(); }, [](scripted_run& r) { r.start().on(search_for("x")); },
    [](scripted_run& r) { r.start().on(search_for("x")).on(returned(1, "r")); }};
  for (auto& reach : stages)
    for (agent_event e :
         {agent_event{cancel_requested{"enough"}}, agent_event{deadline_passed{}}}) {
      auto o = tool_options();
      o.run_time = 1s;
      o.max_steps = 1;
      scripted_run run{o};
      reach(run);
      auto before = run.agent.messages().size();
      run.on(e, start_time + 1s);
      REQUIRE(run.commands.size() == 2);
      CHECK(run.has<abandon>());
      CHECK(
        run.the<finish>().end
        == (std::holds_alternative<deadline_passed>(e) ? run_end::deadline : run_end::cancelled));
      CHECK(run.agent.messages().size() == before);
      CHECK(run.on(returned(1, "late")).commands.empty());
    }
}

TEST_CASE("a custom final_answer's return value is the answer (case 23)", "[tool_loop]") {
  auto o = tool_options();
  o.tools[0].parameters = ordered_json::parse(
    R"({"type":"object","properties":{"city":{"type":"string"},"score":{"type":"number"}}})");
  scripted_run run{o};
  run.start().on(calls({call("e", "final_answer", R"({"city":"Graz","score":3})")}));
  CHECK(run.the<call_tool>().arguments == json{{"city", "Graz"}, {"score", 3}});
  run.on(returned(1, {{"best", "Graz"}, {"__type__", "tuple"}}));
  auto& answer = *run.the<finish>().answer;
  CHECK(answer.text == R"({"__type__":"tuple","best":"Graz"})");
  CHECK(to_plain(answer.tagged) == json{{"best", "Graz"}, {"__type__", "tuple"}});
}

TEST_CASE("a final_answer whose arguments do not fit is no answer", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("e", "final_answer", "{}")}));
  run.on(failed(1, "final_answer: the argument \"answer\" is required", errc::invalid_argument));
  CHECK(!run.has<finish>());
  CHECK(contains(run.last_content(), "\"answer\" is required"));
}

TEST_CASE("text about final_answer is no answer (case 25)", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(search_for("final_answer(5)")).on(returned(1, "final_answer(5)"));
  CHECK(!run.has<finish>());
  run.on(reply("final_answer(5)"));
  CHECK(!run.has<finish>());
}

TEST_CASE("calls in the text are taken from a model that cannot do it natively", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(reply(R"(I search. {"name": "search", "arguments": {"query": "x"}})"));
  CHECK(run.the<call_tool>().arguments == json{{"query", "x"}});
  CHECK(run.noted("action")["source"] == "text");
  run.on(returned(1, "found"));
  auto messages = run.request();
  CHECK(messages[2]["content"] == R"(I search. {"name": "search", "arguments": {"query": "x"}})");
  CHECK(messages[3] == json{{"role", "user"}, {"content", "Observation:\nfound"}});
}

TEST_CASE("think blocks do not stay in memory; other text stays as it came", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  auto thoughtful = search_for("x");
  thoughtful.reply.text = "<think>{\"name\": \"search\"}</think>\nI search. ";
  run.start().on(thoughtful).on(returned(1, "r"));
  CHECK(run.request()[2]["content"] == "I search.");
  auto plain = search_for("y");
  plain.reply.text = " I search.\n";
  run.on(plain).on(returned(2, "r"));
  CHECK(run.request()[4]["content"] == " I search.\n");
}

TEST_CASE("the provider's own part of a reply goes back with it", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  auto said = search_for("x");
  said.reply.kept = R"({"reasoning_details":[1]})";
  said.reply.tool_calls[0].kept = R"({"extra_content":{"signature":"s"}})";
  run.start().on(said).on(returned(1, "r"));
  auto message = run.request()[2];
  CHECK(message["reasoning_details"] == json::array({1}));
  CHECK(message["tool_calls"][0]["extra_content"]["signature"] == "s");
}

TEST_CASE("a long result is cut in its middle, and many share one bound (57, D)", "[tool_loop]") {
  auto o = tool_options();
  o.max_value_bytes = 10'000;
  o.max_log_bytes = 12'000;
  scripted_run run{o};
  run.start().on(search_for("x")).on(returned(1, std::string(200'000, 'x')));
  CHECK(run.last_content().size() < 10'100);
  CHECK(contains(run.last_content(), "[190000 bytes cut]"));
  run.on(calls({call("a", "search", R"({"query":"1"})"), call("b", "search", R"({"query":"2"})"),
                call("c", "search", R"({"query":"3"})")}));
  for (auto id : {2u, 3u, 4u})
    run.on(returned(id, std::string(50'000, 'y')));
  CHECK(contains(run.last_content(), "[46000 bytes cut]"));
}

TEST_CASE("the same calls with the same results three times give a nudge, once more the end",
          "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start();
  for (std::uint64_t i = 1; i <= 3; ++i)
    run.on(search_for("x")).on(returned(i, "r"));
  CHECK(run.last_content().starts_with("r\n\nYou have done exactly this"));
  run.on(search_for("x")).on(returned(4, "r"));
  CHECK(run.the<finish>().end == run_end::stuck);
  CHECK(std::holds_alternative<finish>(run.commands.back()));
}

TEST_CASE("other arguments or other results are no circle", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start();
  for (std::uint64_t i = 1; i <= 8; ++i) {
    run.on(search_for(i % 2 == 0 ? "a" : "b")).on(returned(i, i % 3));
    REQUIRE(run.has<ask_model>());
  }
}

TEST_CASE("an answer of a call that is not out changes nothing", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start();
  CHECK(run.on(returned(1, "early")).commands.empty());
  run.on(calls({call("a", "search", "{}"), call("b", "search", "{}")}));
  CHECK(run.on(returned(9, "unknown")).commands.empty());
  CHECK(run.on(returned(0, "unknown")).commands.empty());
  run.on(returned(1, "first"));
  CHECK(run.on(returned(1, "again")).commands.empty());
  CHECK(run.on(reply("late")).commands.empty());
  CHECK(run.on(printed("no snippet runs here")).commands.empty());
  CHECK(run.on(sandbox_failed{"nor is one opened"}).commands.empty());
  run.on(returned(2, "second"));
  CHECK(run.request()[3]["content"] == "first");
}

TEST_CASE("a reply of ten megabytes is refused and kept short, as text and as a call",
          "[tool_loop]") {
  const std::string much(10u << 20, 'a');
  scripted_run run{plain_tool_agent()};
  run.start().on(search_for(much));
  CHECK(run.all<call_tool>().empty());
  CHECK(contains(run.last_content(), "bytes long, and at most 262144 are taken in a turn"));
  CHECK(run.agent.messages().bytes() < 20'000);
  run.on(reply("Action: {\"name\": \"search\", \"arguments\": {\"query\": \"" + much + "\"}}"));
  CHECK(run.all<call_tool>().empty());
  CHECK(contains(run.last_content(), "it is 10485"));
  run.on(calls({call("a", much, "{}")}));
  CHECK(run.the<call_tool>().tool.size() == 200);
  run.on(failed(1, "no such tool"));
  CHECK(run.agent.messages().bytes() < 600'000);
}

TEST_CASE("a reply's own part that holds too much does not go back", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  auto said = search_for("x");
  said.reply.kept = R"({"blocks":")" + std::string(1u << 20, 'a') + "\"}";
  run.start().on(said).on(returned(1, "r"));
  CHECK(run.agent.messages().bytes() < 20'000);
}

TEST_CASE("of more calls than a turn may have none is carried out", "[tool_loop]") {
  auto o = tool_options();
  o.max_calls = 3;
  scripted_run run{o};
  run.start().on(calls(std::vector(1'000, call("x", "search", "{}"))));
  CHECK(run.all<call_tool>().empty());
  auto messages = run.request();
  CHECK(messages[2]["tool_calls"].size() == 1);
  CHECK(contains(messages[3]["content"], "made 1000 calls, more than the 3 that a turn may have"));
  run.on(calls(std::vector(3, call("x", "search", "{}"))));
  CHECK(run.all<call_tool>().size() == 3);
}

TEST_CASE("bytes that are not UTF-8 are replaced in calls and results", "[tool_loop]") {
  scripted_run run{plain_tool_agent()};
  run.start().on(calls({call("i\xFF", "se\xC3rch", "{\"query\": \"\xED\xA0\"}")}, "t\xFF"));
  CHECK(run.the<call_tool>().tool == "se\uFFFDrch");
  run.on(returned(1, "r\xFF"));
  auto messages = run.request();
  CHECK(messages[2]["content"] == "t\uFFFD");
  CHECK(messages[3]["content"] == "r\uFFFD");
  CHECK(messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]);
}

TEST_CASE("budgets end a tool-calling run before the next call of the model", "[tool_loop]") {
  auto o = tool_options();
  o.token_budget = 100;
  scripted_run run{o};
  auto dear = search_for("x");
  dear.reply.usage.input = 100;
  run.start().on(dear);
  CHECK(run.has<call_tool>());
  run.on(returned(1, "r"));
  CHECK(run.the<finish>().end == run_end::budget);
}

TEST_CASE("smolagents' words in a schema reach the provider as JSON Schema", "[tool_loop]") {
  auto o = tool_options();
  o.tools[1].parameters = ordered_json::parse(R"({"properties": {
    "a": {"type": "any"},
    "b": {"type": "array", "items": {"type": "string", "nullable": true}}}})");
  o.tools.push_back({"ping", "Nothing to say.", nullptr, "null", false, false});
  scripted_run run{o};
  run.start();
  auto& tools = run.the<ask_model>().request.settings->tools;
  CHECK(json(tools[1].parameters) == json::parse(R"({"type": "object", "properties": {
    "a": {}, "b": {"type": "array", "items": {"type": ["string", "null"]}}}})"));
  CHECK(json(tools[2].parameters) == json::parse(R"({"type": "object", "properties": {}})"));
}

TEST_CASE("a tool-calling agent's options are checked like any other's (case 22)", "[tool_loop]") {
  auto refused = [](auto change) {
    auto o = tool_options();
    change(o);
    auto ok = validate(o);
    REQUIRE(!ok);
    CHECK(ok.error().code == errc::invalid_argument);
    return ok.error().detail;
  };
  CHECK(validate(tool_options()));
  CHECK(contains(refused([](auto& o) { o.tools.push_back(search_spec()); }), "taken by another"));
  CHECK(contains(refused([](auto& o) { o.name = "search"; }), "the agent itself"));
  CHECK(contains(refused([](auto& o) { o.tools[1].name = "class"; }), "'class'"));
  CHECK(contains(refused([](auto& o) { o.max_calls = 0; }), "max_calls"));
  CHECK(contains(refused([](auto& o) { o.choice = tool_choice::mode::none; }), "choice"));
  CHECK(contains(refused([](auto& o) { o.tools.erase(o.tools.begin()); }), "final_answer"));
}

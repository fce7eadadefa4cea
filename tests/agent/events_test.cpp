#include "runtime/core/overloaded.hpp"
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <set>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

agent_event through_json(const agent_event& e) {
  auto text = dump_json(to_json(e));
  auto parsed = parse_json(text);
  REQUIRE(parsed);
  auto back = event_from_json(kind_of(e), *parsed);
  REQUIRE(back);
  return *std::move(back);
}

/// Everything about a command that can be compared.
std::string fingerprint(const agent_command& c) {
  auto ticks = [](time_point t) { return std::to_string(t.time_since_epoch().count()); };
  return std::visit(
    overloaded{[&](const ask_model& x) {
                 auto& r = x.request;
                 std::string stop;
                 for (auto& s : r.settings->stop)
                   stop += s + "|";
                 if (r.settings->output)
                   stop += r.settings->output->schema.dump();
                 return "ask " + std::string{r.messages.text()} + stop + ticks(r.deadline)
                        + std::to_string(r.turn);
               },
               [&](const run_code& x) {
                 return "run " + x.code.code + std::to_string(x.code.may_be_prose)
                        + ticks(x.code.soft_deadline) + ticks(x.code.hard_deadline);
               },
               [](const note& x) { return "note " + x.kind + dump_json(x.payload); },
               [](const abandon&) { return std::string{"abandon"}; },
               [](const call_tool& x) {
                 return "call " + to_string(x.call) + x.tool + dump_json(x.arguments);
               },
               [](const await_more&) { return std::string{"await"}; },
               [](const finish& x) {
                 return "finish " + std::string{to_string(x.end)} + x.error
                        + (x.answer ? dump_json(x.answer->tagged) + x.answer->text : "none")
                        + std::to_string(x.turns) + "," + std::to_string(x.snippets) + ","
                        + std::to_string(x.snippet_failures) + ","
                        + std::to_string(x.model_attempts) + "," + std::to_string(x.tokens.total())
                        + "," + std::to_string(x.sandbox.wall.count());
               }},
    c);
}

std::vector<std::string> fingerprints(const std::vector<agent_command>& commands) {
  std::vector<std::string> out;
  for (auto& c : commands)
    out.push_back(fingerprint(c));
  return out;
}

/// A long run with every sort of turn in it, some of it with broken bytes.
std::vector<agent_event> eventful_run() {
  auto used = printed("line\xFF\n");
  used.outcome.usage = {12us, 7us, 4096, 3};
  used.outcome.logs_dropped = 17;
  used.outcome.result = value{json{{"__type__", "tuple"}, {"data", {1, 2}}}, "(1, 2)"};
  return {run_started{"task \xC3",
                      {{role::user, "hi", {}, {}},
                       {role::assistant, "", {{"id1", "f", "{}"}}, {}},
                       {role::tool, "r", {}, "id1"}}},
          reply("<think>x</think>just prose about a final answer", {5, 6, 1, 2}),
          ended(snippet_end::not_code),
          code("print('\xED\xA0\x80')"),
          used,
          reply(""),
          code("1 / 0"),
          raised("ZeroDivisionError", "division by zero", 1, "p"),
          code("big()"),
          ended(snippet_end::memory, "1 GiB"),
          printed("late"),
          code("final_answer(0)"),
          answered(0, "0"),
          reply("final_answer(1)"),
          answered(1.5, "1.5"),
          cancel_requested{"late"}};
}

/// The same for an agent that calls tools.
std::vector<agent_event> eventful_calls() {
  auto two = calls({call("a\xFF", "search", R"({"query":"x"})"), call("a\xFF", "se\xC3", "{}")},
                   "<think>t</think>both\xED\xA0");
  two.reply.kept = R"({"x":1})";
  return {
    run_started{"task \xC3", {{role::user, "hi", {}, {}}, {role::assistant, "hello", {}, {}}}},
    reply("no call at all", {5, 6, 1, 2}),
    two,
    failed(2, "no such \xFF tool", errc::not_found),
    returned(1, "broken \xE2\x82 text"),
    returned(1, "late"),
    calls({call("", "search", "{\"query\": \"cut"), call("", "final_answer", "{}")}),
    reply("Action: {\"name\": \"search\", \"arguments\": {\"query\": \"\xC3\"}}"),
    printed("not of this run"),
    returned(3, {{"list", {1, nullptr, "\xFF"}}}),
    search_for("null"),
    returned(4, nullptr),
    answer_call(0),
    returned(5, 0),
    answer_call("done"),
    returned(6, "d\xFFne"),
    cancel_requested{"late"}};
}

/// A run with plans, a full context, JSON replies, a provider that takes no schema, and answers of
/// the wrong form.
std::vector<agent_event> eventful_context() {
  auto json_code = [](const std::string& python, std::uint64_t tokens = 100) {
    return reply(json{{"thought", "t"}, {"code", python}}.dump(), {tokens, 1, 0, 0});
  };
  auto much = printed(std::string(3'000, 'm'));
  model_failed too_long{
    {failure_class::context_length, "prompt is too long: 9 > 8192 maximum", {}, 1}};
  return {run_started{"task \xC3", {}, {"data:image/png;base64,AA=="}},
          reply("look, then answer\xED\xA0<end_plan>"),
          model_failed{{failure_class::bad_request, "no such response_format", {}, 1}},
          json_code("one()"),
          much,
          too_long,
          json_code("two()"),
          much,
          reply("another plan"),
          json_code("three()"),
          much,
          too_long,
          too_long,
          reply("a summary \xFF"),
          reply("no JSON \xC3"),
          ended(snippet_end::not_code),
          reply("a third plan"),
          json_code("four()", 8'000),
          much,
          json_code("final_answer('x')"),
          answered("x", "x"),
          reply("a fourth plan"),
          json_code("five()"),
          much,
          reply("forced, and no number"),
          reply("7"),
          cancel_requested{"late"}};
}

agent_options full(agent_options o) {
  o.structured = true;
  o.planning_interval = 2;
  o.max_steps = 7;
  o.answer_schema = ordered_json{{"type", "integer"}};
  o.context.keep_steps = 1;
  return o;
}

agent_options picky(agent_options o) {
  o.run_time = 100s;
  o.checks = {{"nonzero", [](const value& v) -> result<void> {
                 return v.tagged != 0 ? result<void>{} : fail(errc::denied, "zero");
               }}};
  return o;
}

}  // namespace

TEST_CASE("folding any prefix of the journalled events gives the same next commands", "[events]") {
  auto [definition, events] = GENERATE(from_range(
    std::vector{std::pair{definition_of(picky(options_for_tests())), eventful_run()},
                std::pair{definition_of(picky(tool_options())), eventful_calls()},
                std::pair{definition_of(full(options_for_tests())), eventful_context()}}));
  agent_machine original{definition, openai_codec().encoder(), run_id{1}};
  bool finished = false;
  for (std::size_t n = 0; n < events.size(); ++n) {
    CAPTURE(n);
    auto now = [](std::size_t i) { return start_time + std::chrono::seconds{i}; };
    agent_machine folded{definition, openai_codec().encoder(), run_id{1}};
    for (std::size_t i = 0; i < n; ++i)
      (void)folded.on(through_json(events[i]), now(i));
    auto branch = original;
    auto expected = fingerprints(original.on(events[n], now(n)));
    CHECK(fingerprints(folded.on(through_json(events[n]), now(n))) == expected);
    CHECK(fingerprints(branch.on(events[n], now(n))) == expected);
    CHECK(folded.messages().view().text() == original.messages().view().text());
    CHECK(folded.step() == original.step());
    finished = original.finished();
  }
  CHECK(finished);
}

TEST_CASE("the run with a full context meets all that it is there for", "[events]") {
  scripted_run run{full(options_for_tests())};
  std::set<std::string> met;
  for (auto& e : eventful_context()) {
    run.on(e);
    for (auto& x : run.all<note>())
      met.insert(x.kind + (x.payload.contains("how") ? " " + std::string{x.payload["how"]} : "")
                 + (x.payload.value("accepted", true) ? "" : " refused"));
    for (auto& x : run.all<finish>())
      met.insert(std::string{to_string(x.end)} + (x.answer ? " answered" : ""));
  }
  for (auto* kind :
       {"plan", "output_schema_refused", "compaction squeeze", "compaction observations",
        "compaction summary", "final_answer refused", "final_answer", "max_steps answered"})
    CHECK(met.contains(kind));
}

TEST_CASE("a copy of a run is a branch that does not disturb the original", "[events]") {
  scripted_run run;
  run.start().on(code("x = 1"));
  auto branch = run.agent;
  (void)branch.on(printed("other"), start_time);
  run.on(printed("mine"));
  CHECK(run.last_content() == "Observation:\nExecution logs:\nmine");
  CHECK(branch.messages().message(3).find("other") != std::string_view::npos);
}

TEST_CASE("every member of every event survives JSON", "[events]") {
  model_reply r{.text = "text",
                .reasoning = "because",
                .tool_calls = {{"i", "n", "{\"a\":1}", "{\"x\":1}"}},
                .kept = "[{}]",
                .finish_reason = "stop",
                .model = "m-1",
                .usage = {1, 2, 3, 4, 5},
                .attempts = 5,
                .latency = 678ms};
  chat_message m{role::tool, "c", {{"a", "b", "c"}}, "id", {"https://e.org/a.png"}, "{}", true};
  model_failure f{failure_class::rate_limited, "slow down", 1500ms, 4};
  auto full = raised("E", "m", 3, "logs").outcome;
  full.error->traceback = "tb";
  full.reason = "why";
  full.is_final = true;
  for (agent_event e :
       {agent_event{run_started{"t", {m}, {"https://e.org/b.png"}}}, agent_event{model_replied{r}},
        agent_event{model_failed{f}}, agent_event{snippet_done{full}},
        agent_event{sandbox_failed{"d"}}, agent_event{cancel_requested{"c"}},
        agent_event{deadline_passed{}}, agent_event{returned(3, {{"a", 1}})},
        agent_event{failed(4, "why", errc::denied)}}) {
    auto back = through_json(e);
    CHECK(back.index() == e.index());
    CHECK(to_json(back) == to_json(e));
  }
  auto back = std::get<model_replied>(through_json(model_replied{r})).reply;
  CHECK(back == r);
  auto started =
    std::get<run_started>(through_json(run_started{"t", {m}, {"https://e.org/b.png"}}));
  CHECK(started.history[0] == m);
  CHECK(started.images == std::vector<std::string>{"https://e.org/b.png"});
  auto failure = std::get<model_failed>(through_json(model_failed{f})).failure;
  CHECK(failure.kind == failure_class::rate_limited);
  CHECK(failure.retry_after == 1500ms);
  auto outcome = std::get<snippet_done>(through_json(snippet_done{full})).outcome;
  CHECK(outcome.error->line == 3);
  CHECK(outcome.error->traceback == "tb");
  CHECK(outcome.reason == "why");
  auto answer = std::get<tool_replied>(through_json(failed(4, "why", errc::denied)));
  CHECK(answer.call == call_id{4});
  CHECK(answer.outcome.error() == error{errc::denied, "why"});
  tool_replied paid = {call_id{5}, json{"report"}, run_usage{{10, 5, 2, 1}, {}, 3}};
  paid.used->sandbox.wall = micros{7};
  auto report = std::get<tool_replied>(through_json(paid));
  REQUIRE(report.used);
  CHECK(report.used->tokens == token_usage{10, 5, 2, 1});
  CHECK(report.used->sandbox.wall == micros{7});
  CHECK(report.used->model_attempts == 3);
  CHECK(std::get<run_started>(through_json(run_started{.task = "t", .time_left = millis{250}}))
          .time_left
        == millis{250});
  CHECK(std::get<tool_replied>(through_json(returned(3, {{"a", 1}}))).outcome == json{{"a", 1}});
}

TEST_CASE("every end of a snippet survives JSON", "[events]") {
  for (int i = 0; i <= static_cast<int>(snippet_end::killed); ++i) {
    auto end = static_cast<snippet_end>(i);
    CHECK(std::get<snippet_done>(through_json(ended(end))).outcome.end == end);
    CHECK(survives(end) == (i <= static_cast<int>(snippet_end::not_code)));
  }
}

TEST_CASE("a damaged event is corrupt and says where", "[events]") {
  struct {
    std::string_view kind, payload, says;
  } const broken[] = {
    {"run_stopped", "{}", "run_stopped"},
    {"run_started", "[]", "run_started is not an object"},
    {"run_started", "{}", "run_started.task"},
    {"run_started", R"({"task": 1})", "run_started.task is not a string"},
    {"run_started", R"({"task": "", "history": {}})", "history is not an array"},
    {"run_started", R"({"task": "", "history": [{"role": "boss"}]})",
     "message.role is not a known word"},
    {"run_started", R"({"task": "", "history": [{"role": "user", "images": [1]}]})",
     "images has something"},
    {"run_started", R"({"task": "", "images": [1]})", "images has something"},
    {"model_replied", "{}", "reply.text"},
    {"model_replied", R"({"text": "", "attempts": -1})", "reply.attempts"},
    {"model_replied", R"({"text": "", "attempts": 5000000000})", "reply.attempts"},
    {"model_replied", R"({"text": "", "latency_ms": 18446744073709551615})", "reply.latency_ms"},
    {"model_replied", R"({"text": "", "usage": {"input": 1.5}})", "usage.input"},
    {"model_replied", R"({"text": "", "tool_calls": [3]})", "tool_call is not an object"},
    {"model_failed", R"({"kind": 3})", "failure.kind is not a string"},
    {"model_failed", R"({"kind": "odd"})", "failure.kind is not a known word"},
    {"snippet_done", R"({"end": "ok", "is_final": 1})", "outcome.is_final"},
    {"snippet_done", R"({"end": "ok", "error": []})", "error is not an object"},
    {"snippet_done", "null", "outcome is not an object"},
    {"cancel_requested", R"({"reason": []})", "cancel_requested.reason"},
    {"tool_replied", R"({"value": 1})", "tool_replied.call"},
    {"tool_replied", R"({"call": -1, "value": 1})", "tool_replied.call"},
    {"tool_replied", R"({"call": 1, "error": "x"})", "tool_replied.error is not an object"},
  };
  for (auto& [kind, payload, says] : broken) {
    CAPTURE(kind, payload);
    auto e = event_from_json(kind, json::parse(payload));
    REQUIRE(!e);
    CHECK(e.error().code == errc::corrupt);
    CHECK(e.error().detail.find(says) != std::string::npos);
  }
}

TEST_CASE("members that a later version added are ignored, those it lacks take defaults",
          "[events]") {
  auto e =
    event_from_json("snippet_done", json::parse(R"({"end": "ok", "new": [1], "reason": null})"));
  REQUIRE(e);
  CHECK(std::get<snippet_done>(*e).outcome.logs.empty());
}

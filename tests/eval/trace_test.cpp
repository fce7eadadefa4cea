#include "runtime/eval/trace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

journal_event at(std::int64_t ms, std::string kind, json payload) {
  static std::uint32_t seq = 0;
  return {run_id{1}, ++seq, 1'000'000 + ms * 1000, std::move(kind), payload.dump()};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<journal_event> a_run() {
  return {
    at(0, "run_started",
       {{"task", "Add 2 and 3."}, {"history", json::array()}, {"sample_id", "s1"}}),
    at(1, "model_requested", {{"turn", 0}, {"bytes", 812}}),
    at(1'200, "model_replied",
       {{"text", "I add.\n<code>\nprint(2+3)\n</code>"},
        {"finish_reason", "stop"},
        {"usage", {{"input", 100}, {"output", 20}}},
        {"attempts", 2},
        {"latency_ms", 1199}}),
    at(1'200, "action", {{"step", 1}, {"code", "print(2+3)"}}),
    at(1'210, "tool_requested",
       {{"call", 7}, {"tool", "convert_units"}, {"arguments", {{"value", 1}}}}),
    at(1'211, "tool_replied",
       {{"call", 7}, {"error", {{"kind", "invalid_argument"}, {"message", "no"}}}}),
    at(1'250, "snippet_done",
       {{"end", "raised"},
        {"logs", "5\n"},
        {"usage", {{"wall_us", 4'500}, {"cpu_us", 900}}},
        {"error", {{"type", "ValueError"}, {"message", "bad"}, {"traceback", "Traceback: here"}}}}),
    at(1'250, "observation", {{"step", 1}, {"text", "Observation: 5"}, {"is_error", true}}),
    at(1'300, "final_answer", {{"text", "5"}, {"accepted", false}, {"why", "not a number"}}),
    at(1'300, "run_ended", {{"end", "success"}, {"turns", 1}, {"answer", "5"}}),
  };
}

}  // namespace

TEST_CASE("a timeline shows what happened, when, in order", "[trace]") {
  auto text = render_trace(a_run(), std::nullopt);
  INFO(text);
  CHECK(has(text, "  +0.000s  run_started  s1\n    Add 2 and 3.\n"));
  CHECK(has(text, "  +0.001s  model_requested  turn 0, 812 bytes\n"));
  CHECK(has(text, "model_replied  stop, 100 tokens in, 20 out, 1.20 s, 2 attempts\n    I add.\n"));
  CHECK(has(text, "action  step 1\n    > print(2+3)\n"));
  CHECK(has(text, "tool_requested  7 convert_units\n    {\"value\":1}\n"));
  CHECK(has(text, "tool_replied  7 invalid_argument: no\n"));
  CHECK(has(text, "snippet_done  raised, wall 4.5 ms, CPU 900 us; ValueError: bad\n"));
  CHECK(has(text, "observation  step 1\n    Observation: 5\n"));
  CHECK(has(text, "final_answer  refused: not a number\n    5\n"));
  CHECK(has(text, "run_ended  success after 1 turns\n    5\n"));
}

TEST_CASE("code stands in the timeline once, unless all is asked for", "[trace]") {
  auto brief = render_trace(a_run(), std::nullopt);
  CHECK(has(brief, "<code>\n    [the code below]\n    </code>"));
  CHECK(!has(brief, "Traceback: here"));
  trace_options all;
  all.full = true;
  auto full = render_trace(a_run(), std::nullopt, all);
  CHECK(has(full, "<code>\n    print(2+3)\n    </code>"));
  CHECK(has(full, "    | 5\n"));
  CHECK(has(full, "    ! Traceback: here\n"));
}

TEST_CASE("a turn of tool calls shows which were made, and each with its arguments once",
          "[trace]") {
  json calls{{{"tool", "search"}, {"id", "a"}, {"call", 1}},
             {{"tool", "final_answer"}, {"id", "b"}, {"refused", "not alone"}}};
  std::vector<journal_event> events{
    at(0, "model_replied",
       {{"text", ""},
        {"finish_reason", "tool_calls"},
        {"tool_calls", {{{"id", "a"}, {"name", "search"}, {"arguments", R"({"q":"x"})"}}}}}),
    at(0, "action", {{"step", 2}, {"source", "native"}, {"calls", calls}}),
    at(0, "tool_requested", {{"call", 1}, {"tool", "search"}, {"arguments", {{"q", "x"}}}}),
    at(5, "tool_replied", {{"call", 1}, {"value", "found"}})};
  auto text = render_trace(events, std::nullopt);
  INFO(text);
  CHECK(has(text, "action  step 2: search, final_answer (refused)\n"));
  CHECK(has(text, "tool_requested  1 search\n    {\"q\":\"x\"}\n"));
  CHECK(has(text, "tool_replied  1\n    \"found\"\n"));
  CHECK(!has(text, "search({"));
  trace_options all;
  all.full = true;
  CHECK(has(render_trace(events, std::nullopt, all), "search({\"q\":\"x\"})\n"));
}

TEST_CASE("long text is cut in the middle unless all is asked for, and wrapped", "[trace]") {
  std::vector<journal_event> events{at(0, "observation", {{"text", std::string(5'000, 'x')}})};
  trace_options narrow;
  narrow.width = 50;
  narrow.block_bytes = 100;
  auto text = render_trace(events, std::nullopt, narrow);
  CHECK(has(text, "[4900 bytes cut]"));
  for (std::size_t from = 0; from < text.size();) {
    auto end = text.find('\n', from);
    CHECK(end - from <= 50);
    from = end + 1;
  }
  narrow.full = true;
  auto full = render_trace(events, std::nullopt, narrow);
  CHECK(std::count(full.begin(), full.end(), 'x') == 5'000);
}

TEST_CASE("words are kept whole where lines break, and nothing is lost", "[trace]") {
  trace_options narrow;
  narrow.width = 40;
  auto text = render_trace(
    {at(0, "observation", {{"text", "alpha beta gamma delta epsilon zeta eta theta"}})},
    std::nullopt, narrow);
  CHECK(has(text, "    alpha beta gamma delta epsilon \n    zeta eta theta\n"));
}

TEST_CASE("unknown kinds and odd payloads are shown as they are", "[trace]") {
  auto text = render_trace({at(0, "checkpoint", {{"size", 12}}),
                            {
                              run_id{1},
                              2,
                              1'000'000,
                              "action",
                              "not json",
                            },
                            at(0, "model_replied", {{"text", 5}, {"usage", "x"}})},
                           std::nullopt);
  CHECK(has(text, "checkpoint\n    {\"size\":12}\n"));
  CHECK(has(text, "action\n    not json\n"));
  CHECK(has(text, "model_replied  , 0 tokens in, 0 out"));
}

TEST_CASE("a result closes the timeline with its score", "[trace]") {
  run_result r;
  r.end = "success";
  r.sample_id = "s1";
  r.score = 1.0;
  r.score_note = "exact: '5' fits '5'";
  auto text = render_trace(a_run(), r);
  CHECK(has(text, "+1.300s  result  success, sample s1, epoch 1: score 1 (exact: '5' fits '5')\n"));
  r.score.reset();
  r.score_note.clear();
  CHECK(has(render_trace({}, r), "unscored"));
}

TEST_CASE("what a model, a tool or a sandbox wrote cannot command the terminal", "[trace]") {
  const std::string evil = "\x1B[2J\x1B]0;x\a\x08";
  std::vector<journal_event> events;
  for (auto kind :
       {"run_started", "model_replied", "model_failed", "action", "snippet_done", "observation",
        "final_answer", "tool_requested", "tool_replied", "sandbox_failed", "run_ended", "unknown"})
    events.push_back(
      at(0, kind,
         {{"task", evil},
          {"text", evil},
          {"kind", evil},
          {"detail", evil},
          {"code", evil},
          {"end", evil},
          {"logs", evil},
          {"why", evil},
          {"tool", evil},
          {"arguments", evil},
          {"answer", evil},
          {"sample_id", evil},
          {"finish_reason", evil},
          {"reason", evil},
          {"tool_calls", {{{"name", evil}, {"arguments", evil}}}},
          {"accepted", false},
          {"error", {{"type", evil}, {"message", evil}, {"traceback", evil}, {"kind", evil}}}}));
  events.push_back({run_id{1}, 99, 1'000'000, evil, evil});
  trace_options all;
  all.full = true;
  for (const auto& o : {trace_options{}, all}) {
    auto text = render_trace(events, std::nullopt, o);
    CHECK(text.find('\x1B') == std::string::npos);
    CHECK(text.find('\a') == std::string::npos);
    CHECK(text.find('\x08') == std::string::npos);
  }
  all.color = true;
  CHECK(has(render_trace(events, std::nullopt, all), "\x1B[1mrun_started\x1B[0m"));
}

TEST_CASE("the JSON of a trace keeps payloads, and text where there is no JSON", "[trace]") {
  auto j = trace_json({at(5, "action", {{"step", 1}}), {run_id{1}, 9, 7, "x", "not json"}});
  CHECK(j[0]["kind"] == "action");
  CHECK(j[0]["payload"]["step"] == 1);
  CHECK(j[0]["at_us"] == 1'005'000);
  CHECK(j[1] == json{{"seq", 9}, {"at_us", 7}, {"kind", "x"}, {"payload", "not json"}});
}

TEST_CASE("a managed agent's run stands where it began, on its manager's clock", "[trace]") {
  std::vector<journal_event> manager{
    at(0, "run_started", {{"task", "Find out."}, {"sample_id", "s1"}}),
    at(100, "child_started", {{"call", 1}, {"agent", "search"}, {"run", 2}}),
    at(900, "tool_replied", {{"call", 1}, {"value", "4"}}),
  };
  std::vector<journal_event> child{at(150, "run_started", {{"task", "Look it up."}}),
                                   at(800, "run_ended", {{"end", "success"}, {"turns", 1}})};
  auto of_run = [&](run_id run) { return run == run_id{2} ? child : std::vector<journal_event>{}; };
  auto text = render_trace(manager, std::nullopt, {}, of_run);
  INFO(text);
  CHECK(has(text, "   +0.100s  child_started  search, run 2\n"
                  "  |    +0.150s  run_started\n  |     Look it up.\n  |    +0.800s  run_ended"));
  CHECK(text.find("run_ended") < text.find("tool_replied"));
  CHECK_FALSE(has(render_trace(manager, std::nullopt), "Look it up."));
  auto listed = trace_json(manager, of_run);
  CHECK(listed[1]["events"].size() == 2);
  CHECK_FALSE(listed[0].contains("events"));
}

TEST_CASE("a journal whose runs call each other in a circle has an end", "[trace]") {
  std::vector<journal_event> circle{at(0, "child_started", {{"agent", "a"}, {"run", 1}})};
  auto text = render_trace(circle, std::nullopt, {}, [&](run_id) { return circle; });
  CHECK(text.size() < 20'000);
}

TEST_CASE("letters and hooks are told in a line", "[trace]") {
  auto text = render_trace(
    {at(0, "letter", {{"from", "a"}, {"to", "b"}, {"kind", "question"}, {"text", "How many?"}}),
     at(1, "hook",
        {{"hook", "guard"}, {"at", "before_code"}, {"did", "vetoed"}, {"why", "no files"}})},
    std::nullopt);
  INFO(text);
  CHECK(has(text, "letter  a to b: question\n    How many?\n"));
  CHECK(has(text, "hook  guard vetoed at before_code: no files\n"));
}

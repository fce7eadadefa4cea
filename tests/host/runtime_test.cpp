// The embedding API as a program sees it: real threads, the mock model, no sandbox.
#include "tests/host/runtime_fixture.hpp"

#include <algorithm>
#include <latch>
#include <set>
#include <stdexcept>

using namespace troupe;
using namespace std::chrono_literals;
using test::one_word;
using test::test_runtime;

TEST_CASE("a run calls a C++ tool and has its answer", "[embed]") {
  test_runtime t{test::adding_script};
  auto add = make_tool("add", "Adds.", {{"a", "one"}, {"b", "other"}},
                       [](double a, double b) { return a + b; });
  auto adder = t.rt->define({.name = "adder", .tools = {add}, .kind = "tool"});
  REQUIRE(adder);
  CHECK(adder->name() == "adder");
  auto outcome = t.rt->submit(*adder, "What is 2 + 3?").wait();
  CHECK(outcome.ok());
  CHECK(outcome.error.empty());
  CHECK(outcome.answer == json("5.0"));
  CHECK(outcome.text == "5.0");
  CHECK(outcome.turns == 2);
  CHECK(outcome.tool_calls == 2);
  CHECK(outcome.output_tokens > 0);
  CHECK(t.rt->usage().calls == 2);
}

TEST_CASE("events come in order, without a gap, and before the end", "[embed]") {
  test_runtime t{one_word};
  std::vector<live_event> seen;
  bool ended = false, late = false;
  std::latch done{1};
  auto talker = t.define();
  auto r = t.rt->submit(talker, "Say it.",
                        {.on_event =
                           [&](const live_event& e) {
                             late = late || ended;
                             seen.push_back(e);
                           },
                         .on_end =
                           [&](const run_outcome&) {
                             ended = true;
                             done.count_down();
                           }});
  done.wait();
  REQUIRE(seen.size() > 3);
  CHECK(!late);
  CHECK(seen.front().kind == "run_started");
  CHECK(seen.back().kind == "run_ended");
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(seen[i].sequence == i + 1);
    CHECK(seen[i].run == r.id());
  }
}

TEST_CASE("a streamed reply is heard in pieces that make up its text", "[embed]") {
  test_runtime t{R"({"default": {"text": "I say it slowly, in many words.",
    "tool_calls": [{"name": "final_answer", "arguments": {"answer": 1}}]}})"};
  std::string text;
  auto r = t.rt->submit(t.define(), "?", {.on_event = [&](const live_event& e) {
                          if (e.kind == "reply")
                            text += e.payload.at("text").get<std::string>();
                        }});
  CHECK(r.wait().ok());
  t.rt->stop();
  CHECK(text == "I say it slowly, in many words.");
}

TEST_CASE("every way to hear of an end hears it once", "[embed]") {
  test_runtime t{one_word};
  std::atomic<int> before{0}, after{0};
  auto r = t.rt->submit(t.define(), "?", {.on_end = [&](const run_outcome&) { ++before; }});
  auto early = r.future();
  CHECK(early.get().ok());
  CHECK(r.done());
  CHECK(r.wait_for(0ms)->ok());
  CHECK(r.future().get().text == "word");
  r.on_end([&](const run_outcome& o) { after += o.ok(); });
  r.on_end({});
  t.rt->stop();
  CHECK(before == 1);
  CHECK(after == 1);
  r.on_end([&](const run_outcome& o) { after += o.ok(); });
  CHECK(after == 2);
}

TEST_CASE("what a callback throws goes no further", "[embed]") {
  test_runtime t{one_word};
  auto talker = t.define();
  std::atomic<int> ended{0};
  auto first =
    t.rt->submit(talker, "?",
                 {.on_event = [](const live_event&) { throw std::runtime_error{"no"}; },
                  // NOLINTNEXTLINE(bugprone-std-exception-baseclass): anything may be thrown
                  .on_end = [](const run_outcome&) { throw 3; }});
  auto second = t.rt->submit(talker, "?", {.on_end = [&](const run_outcome&) { ++ended; }});
  CHECK(first.wait().ok());
  CHECK(second.wait().ok());
  t.rt->stop();
  CHECK(ended == 1);
}

TEST_CASE("a cancelled run ends at once, says why, and its siblings go on", "[embed]") {
  test_runtime t{test::slow_or_word};
  auto talker = t.define();
  auto slow = t.rt->submit(talker, "slow");
  auto other = t.rt->submit(talker, "word");
  CHECK(other.wait().ok());
  slow.cancel("not wanted any more");
  auto outcome = slow.wait();
  CHECK(outcome.end == "cancelled");
  CHECK(outcome.error.find("not wanted any more") != std::string::npos);
  slow.cancel();
  CHECK(t.rt->submit(talker, "word").wait().ok());
}

TEST_CASE("a runtime's end completes every run and calls every callback, once", "[embed]") {
  std::atomic<int> called{0};
  std::vector<run> runs;
  std::vector<std::future<run_outcome>> futures;
  {
    test_runtime t{test::slow_or_word, {.max_concurrency = 20}};
    auto talker = t.define();
    for (int i = 0; i < 100; ++i) {
      runs.push_back(
        t.rt->submit(talker, "slow", {.on_end = [&](const run_outcome&) { ++called; }}));
      futures.push_back(runs.back().future());
    }
    auto begun = std::chrono::steady_clock::now();
    t.rt->stop();
    CHECK(std::chrono::steady_clock::now() - begun < 10s);
    CHECK(called == 100);
    CHECK(t.rt->submit(talker, "word").wait().end == "cancelled");
  }
  for (auto& f : futures)
    CHECK(f.get().end == "cancelled");
  for (auto& r : runs) {
    CHECK(r.done());
    r.cancel();
    r.pause();
  }
  CHECK(called == 100);
}

TEST_CASE("a runtime may end in one of its callbacks", "[embed]") {
  auto t = std::make_unique<test_runtime>(one_word);
  auto talker = t->define();
  std::promise<void> ended;
  auto r = t->rt->submit(talker, "?", {.on_end = [&](const run_outcome&) {
                           t->rt->stop();
                           ended.set_value();
                         }});
  CHECK(ended.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(r.wait().ok());
}

TEST_CASE("no more runs are open than max_concurrency, and what waits can be cancelled",
          "[embed]") {
  test_runtime t{test::slow_or_word, {.max_concurrency = 1}};
  auto talker = t.define();
  auto slow = t.rt->submit(talker, "slow");
  auto waiting = t.rt->submit(talker, "word");
  auto last = t.rt->submit(talker, "word");
  waiting.cancel();
  CHECK(waiting.wait().end == "cancelled");
  CHECK(!last.wait_for(50ms));
  slow.cancel();
  CHECK(last.wait().ok());
}

TEST_CASE("runtimes live side by side, and keep their agents apart", "[embed]") {
  test_runtime a{one_word}, b{test::slow_or_word};
  auto of_a = a.define();
  CHECK(a.rt->submit(of_a, "?").wait().ok());
  auto stranger = b.rt->submit(of_a, "?").wait();
  CHECK(stranger.end == "error");
  CHECK(stranger.error == "the agent 'agent' was defined by another runtime");
  a.rt->stop();
  CHECK(b.rt->submit(b.define(), "word").wait().ok());
}

TEST_CASE("a tool may block: others are called meanwhile", "[embed]") {
  test_runtime t{test::waiting_script};
  std::latch both{2};
  auto wait = make_tool("meet", "Waits for the other.", [&] {
    both.arrive_and_wait();
    return "met";
  });
  auto waiter = t.rt->define({.tools = {wait}, .kind = "tool"});
  REQUIRE(waiter);
  auto a = t.rt->submit(*waiter, "a"), b = t.rt->submit(*waiter, "b");
  CHECK(a.wait().ok());
  CHECK(b.wait().ok());
}

TEST_CASE("no call waits behind a tool that blocks while a tool thread is free", "[embed]") {
  test_runtime t{R"({"rules": [
    {"from_turn": 1, "reply":
      {"tool_calls": [{"name": "final_answer", "arguments": {"answer": 1}}]}},
    {"if_task_contains": "block", "reply": {"tool_calls": [{"name": "block", "arguments": {}}]}}],
    "default": {"tool_calls": [{"name": "quick", "arguments": {}}]}})",
                 {.tool_threads = 2}};
  std::latch begun{1}, release{1};
  auto block = make_tool("block", "Waits.", [&] {
    begun.count_down();
    release.wait();
    return 1;
  });
  auto quick = make_tool("quick", "Is quick.", [] { return 1; });
  auto caller = t.rt->define({.tools = {block, quick}, .kind = "tool"});
  REQUIRE(caller);
  auto blocked = t.rt->submit(*caller, "block");
  begun.wait();
  std::vector<run> runs;
  for (int i = 0; i < 20; ++i)
    runs.push_back(t.rt->submit(*caller, "go"));
  for (auto& r : runs)
    CHECK(r.wait_for(10s).has_value());
  release.count_down();
  CHECK(blocked.wait().ok());
}

TEST_CASE("a tool that throws is an error that the model reads", "[embed]") {
  test_runtime t{test::adding_script};
  std::string told;
  auto add = make_tool("add", "Adds.", {{"a", "one"}, {"b", "other"}}, [](double, double) -> int {
    throw std::runtime_error{"the adder is out of order"};
  });
  auto adder = t.rt->define({.tools = {add}, .kind = "tool"});
  REQUIRE(adder);
  auto r = t.rt->submit(*adder, "What is 2 + 3?", {.on_event = [&](const live_event& e) {
    if (e.kind == "observation")
      told += e.payload.dump();
  }});
  CHECK(r.wait().turns == 2);
  t.rt->stop();
  CHECK(told.find("out of order") != std::string::npos);
}

TEST_CASE("a check sends an answer back", "[embed]") {
  test_runtime t{R"({"rules": [{"from_turn": 1, "reply": {"tool_calls":
      [{"name": "final_answer", "arguments": {"answer": 4}}]}}],
    "default": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "four"}}]}})"};
  auto checked =
    t.rt->define({.kind = "tool",
                  .checks = {{"number", [](const json& answer, const std::string&) -> result<void> {
                                return answer.is_number()
                                         ? result<void>{}
                                         : fail(errc::invalid_argument, "answer with a number");
                              }}}});
  REQUIRE(checked);
  auto outcome = t.rt->submit(*checked, "2 + 2?").wait();
  CHECK(outcome.answer == json(4));
  CHECK(outcome.turns == 2);
}

TEST_CASE("a journal keeps what a runtime did, and the next one goes on after it", "[embed]") {
  test::temporary_folder folder;
  auto path = (folder.path / "runs.db").string();
  std::set<std::uint64_t> ids;
  for (int session = 0; session < 2; ++session) {
    test_runtime t{one_word, {.out = path}};
    auto talker = t.define();
    for (int i = 0; i < 3; ++i) {
      auto r = t.rt->submit(talker, "?");
      CHECK(r.wait().ok());
      ids.insert(r.id());
    }
  }
  CHECK(ids.size() == 6);
  auto kept = journal::open_readonly(path);
  REQUIRE(kept);
  CHECK((*kept)->results()->size() == 6);
  CHECK((*kept)->batch()->end == "completed");
  for (auto id : ids)
    CHECK((*kept)->events(run_id{id})->back().kind == "run_ended");
}

TEST_CASE("a run that is driven by hand stands still before each request", "[embed]") {
  test::event_log log;
  test_runtime t{test::adding_script};
  auto add = make_tool("add", "Adds.", {{"a", "one"}, {"b", "other"}},
                       [](double a, double b) { return a + b; });
  auto adder = t.rt->define({.tools = {add}, .kind = "tool"});
  REQUIRE(adder);
  auto r = t.rt->submit(*adder, "What is 2 + 3?", {.on_event = log.sink(), .paused = true});
  log.wait_for("paused", 1);
  CHECK(t.rt->usage().calls == 0);
  r.step();
  log.wait_for("paused", 2);
  CHECK(t.rt->usage().calls == 1);
  CHECK(!r.done());
  r.resume();
  CHECK(r.wait().ok());
  CHECK(t.rt->usage().calls == 2);
}

TEST_CASE("a paused run is cancelled as any other, and its time goes on", "[embed]") {
  test::event_log log;
  test_runtime t{one_word};
  auto talker = t.define();
  auto r = t.rt->submit(talker, "?", {.on_event = log.sink(), .paused = true});
  log.wait_for("paused", 1);
  r.cancel();
  CHECK(r.wait().end == "cancelled");
  auto hurried = t.rt->define({.kind = "tool", .run_time = 50ms});
  REQUIRE(hurried);
  CHECK(t.rt->submit(*hurried, "?", {.paused = true}).wait().end == "deadline");
  CHECK(t.rt->usage().calls == 0);
}

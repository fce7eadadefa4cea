#include "tests/agent/agent_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <functional>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A run brought into each state in which something can come.
struct stage {
  std::string name;
  std::function<void(scripted_run&)> reach;
  bool in_flight;
};

std::vector<stage> stages() {
  return {{"not started", [](scripted_run&) {}, false},
          {"thinking", [](scripted_run& r) { r.start(); }, true},
          {"running", [](scripted_run& r) { r.start().on(code("x")); }, true},
          {"answering", [](scripted_run& r) { r.start().on(code("x")).on(printed("")); }, true}};
}

agent_options one_step() {
  auto o = options_for_tests();
  o.max_steps = 1;
  o.run_time = 1s;
  return o;
}

std::vector<agent_event> every_event() {
  return {run_started{"again", {}}, code("y"),
          model_failed{},           printed("late"),
          sandbox_failed{"late"},   cancel_requested{"again"},
          deadline_passed{},        answered(1, "1")};
}

}  // namespace

TEST_CASE("a cancelled run ends in every state, abandoning what is in flight", "[ends]") {
  for (auto& s : stages()) {
    CAPTURE(s.name);
    scripted_run run{one_step()};
    s.reach(run);
    run.on(cancel_requested{"user pressed Ctrl-C"});
    CHECK(run.has<abandon>() == s.in_flight);
    CHECK(run.the<finish>().end == run_end::cancelled);
    CHECK(run.the<finish>().error == "user pressed Ctrl-C");
    CHECK(std::holds_alternative<finish>(run.commands.back()));
  }
}

TEST_CASE("an interrupt after a step keeps that step, and counts it", "[ends]") {
  scripted_run run;
  run.start().on(code("print(1)")).on(printed("1\n"));
  run.on(cancel_requested{"a callback has seen enough"});
  CHECK(run.the<finish>().end == run_end::cancelled);
  CHECK(run.the<finish>().turns == 1);
  CHECK(run.the<finish>().snippets == 1);
  CHECK(run.agent.messages().size() == 4);
  CHECK(run.agent.messages().message(3).find("Execution logs") != std::string_view::npos);
}

TEST_CASE("a passed deadline ends in every state of a started run, abandoning first", "[ends]") {
  for (auto& s : stages()) {
    if (!s.in_flight)
      continue;
    CAPTURE(s.name);
    scripted_run run{one_step()};
    s.reach(run);
    run.on(deadline_passed{}, start_time + 1s);
    REQUIRE(run.commands.size() == 2);
    CHECK(std::holds_alternative<abandon>(run.commands[0]));
    CHECK(run.the<finish>().end == run_end::deadline);
    CHECK(!run.the<finish>().answer);
  }
}

TEST_CASE("after the end every event is ignored", "[ends]") {
  for (auto& s : stages()) {
    scripted_run run{one_step()};
    s.reach(run);
    run.on(cancel_requested{});
    for (auto& e : every_event())
      CHECK(run.on(e).commands.empty());
  }
}

TEST_CASE("an event that does not fit the state changes nothing", "[ends]") {
  scripted_run run;
  for (agent_event e :
       {agent_event{code("x")}, agent_event{printed("")}, agent_event{model_failed{}},
        agent_event{sandbox_failed{}}, agent_event{deadline_passed{}}})
    CHECK(run.on(e).commands.empty());
  run.start();
  for (agent_event e :
       {agent_event{printed("")}, agent_event{answered(1, "1")}, agent_event{sandbox_failed{}},
        agent_event{run_started{"b", {}}}, agent_event{deadline_passed{}}})
    CHECK(run.on(e).commands.empty());
  run.on(code("x"));
  for (agent_event e : {agent_event{code("y")}, agent_event{model_failed{}}})
    CHECK(run.on(e).commands.empty());
  run.on(answered(1, "1"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().turns == 1);
}

TEST_CASE("a model call that times out at the run's deadline is the run's deadline", "[ends]") {
  auto o = options_for_tests();
  o.run_time = 1s;
  model_failed timed_out{{failure_class::timeout, "no answer", {}, 1}};
  scripted_run late{o};
  late.start().on(timed_out, start_time + 1s);
  CHECK(late.the<finish>().end == run_end::deadline);
  scripted_run early{o};
  early.start().on(timed_out, start_time + 999ms);
  CHECK(early.the<finish>().end == run_end::error);
}

TEST_CASE("a model call that fails at the forced answer ends as an error", "[ends]") {
  scripted_run run{one_step()};
  run.start()
    .on(code("x"))
    .on(printed(""))
    .on(model_failed{{failure_class::quota, "out of money", {}, 1}});
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "out of money");
}

TEST_CASE("without a sandbox the run ends as an error", "[ends]") {
  scripted_run run;
  run.start().on(code("x")).on(sandbox_failed{"no user namespaces"});
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "no sandbox: no user namespaces");
}

TEST_CASE("the token budget is checked before each call, the forced one too", "[ends]") {
  auto o = options_for_tests();
  o.token_budget = 100;
  scripted_run run{o};
  auto costs = [](std::uint64_t tokens) {
    auto r = code("x");
    r.reply.usage.input = tokens;
    return r;
  };
  run.start().on(costs(99)).on(printed("a"));
  CHECK(run.has<ask_model>());
  run.on(costs(1));
  CHECK(run.has<run_code>());
  run.on(printed("b"));
  CHECK(!run.has<ask_model>());
  CHECK(run.the<finish>().end == run_end::budget);
  CHECK(run.the<finish>().error == "100 of 100 tokens used");
  o.max_steps = 1;
  scripted_run forced{o};
  forced.start().on(costs(100)).on(printed("a"));
  CHECK(forced.the<finish>().end == run_end::budget);
}

TEST_CASE("an answer that spends the last of the budget counts", "[ends]") {
  auto o = options_for_tests();
  o.token_budget = 10;
  scripted_run run{o};
  auto last = code("final_answer(1)");
  last.reply.usage.output = 50;
  run.start().on(last).on(answered(1, "1"));
  CHECK(run.the<finish>().end == run_end::success);
}

TEST_CASE("the same action and observation three times gives a nudge, once more ends as stuck",
          "[ends]") {
  scripted_run run;
  run.start();
  for (int i = 1; i <= 2; ++i) {
    run.on(code("print(1)")).on(printed("1\n"));
    CHECK(run.last_content() == "Observation:\nExecution logs:\n1");
  }
  run.on(code("print(1)")).on(printed("1\n"));
  CHECK(run.last_content().starts_with(
    "Observation:\nExecution logs:\n1\n\nYou have done exactly this"));
  run.on(code("print(1)")).on(printed("1\n"));
  CHECK(run.the<finish>().end == run_end::stuck);
  CHECK(run.the<finish>().error == "the same action gave the same observation 4 times");
  CHECK(!run.noted("observation").is_null());
}

TEST_CASE("another action or another observation starts the count again", "[ends]") {
  scripted_run run;
  run.start();
  for (int i = 0; i < 9; ++i) {
    run.on(code("poll()")).on(printed(i % 3 == 2 ? "new" : "old"));
    CHECK(run.has<ask_model>());
    CHECK(!run.last_content().ends_with("you have."));
  }
}

TEST_CASE("replies without code get stuck too, and zero switches the detection off", "[ends]") {
  scripted_run run;
  run.start();
  for (int i = 0; i < 4; ++i)
    run.on(reply(""));
  CHECK(run.the<finish>().end == run_end::stuck);
  auto o = options_for_tests();
  o.repeat_limit = 0;
  o.max_steps = 10;
  scripted_run free{o};
  free.start();
  for (int i = 0; i < 10; ++i)
    free.on(reply(""));
  CHECK(free.agent.step() == 11);
  CHECK(free.has<ask_model>());
}

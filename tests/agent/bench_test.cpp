// Figures, not tests: run with the tag [.bench].
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <ctime>

using namespace troupe;
using namespace troupe::test;

namespace {

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

using turn_fn = std::vector<agent_command> (*)(agent_machine& agent, int turn);

std::string kilobyte() {
  return std::string(1024, 'x');
}

std::vector<agent_command> code_turn(agent_machine& agent, int turn) {
  auto said = code("value = compute(" + std::to_string(turn) + ")\nprint(value)");
  (void)agent.on(said, start_time);
  static const auto outcome = printed(kilobyte());
  return agent.on(outcome, start_time);
}

std::vector<agent_command> tool_turn(agent_machine& agent, int turn) {
  (void)agent.on(search_for("page " + std::to_string(turn)), start_time);
  return agent.on(returned(static_cast<std::uint64_t>(turn) + 1, kilobyte()), start_time);
}

std::vector<agent_command> two_calls_turn(agent_machine& agent, int turn) {
  auto first = static_cast<std::uint64_t>(turn) * 2 + 1;
  (void)agent.on(calls({call("a", "search", json{{"query", turn}}.dump()),
                        call("b", "search", json{{"query", -turn}}.dump())}),
                 start_time);
  (void)agent.on(returned(first + 1, kilobyte()), start_time);
  return agent.on(returned(first, kilobyte()), start_time);
}

/// CPU of one turn (reply in, effect out, outcome in, request out) of runs that are `turns` long
/// and began with a task of `history` bytes, averaged over the last ten turns of each.
double per_turn(const std::shared_ptr<const agent_definition>& definition, turn_fn turn, int turns,
                int runs, std::size_t history = 6) {
  double spent = 0;
  for (int r = 0; r < runs; ++r) {
    agent_machine agent{definition, openai_codec().encoder(), run_id{1}};
    auto last = agent.on(run_started{std::string(history, 't'), {}}, start_time);
    double began = 0;
    for (int t = 0; t < turns; ++t) {
      if (t == turns - 10)
        began = cpu_us();
      last = turn(agent, t);
    }
    spent += cpu_us() - began;
    REQUIRE(std::holds_alternative<ask_model>(last.back()));
  }
  return spent / (10.0 * runs);
}

agent_options many_steps(agent_options o) {
  o.max_steps = 1000;
  o.repeat_limit = 1000;  // counted, but never reached
  return o;
}

}  // namespace

TEST_CASE("CPU per turn with 1 KB observations", "[.bench]") {
  auto o = many_steps(options_for_tests());
  auto definition = definition_of(o);
  auto tools = definition_of(many_steps(tool_options()));
  struct {
    const char* what;
    std::shared_ptr<const agent_definition> agent;
    turn_fn turn;
  } const kinds[] = {{"code", definition, code_turn},
                     {"one call", tools, tool_turn},
                     {"two calls", tools, two_calls_turn}};
  for (auto& k : kinds) {
    (void)per_turn(k.agent, k.turn, 10, 100);
    std::printf("%s, 1 KB observations: %.1f us CPU per turn at turn 10, %.1f at turn 100, %.1f "
                "there after 200 KB\n",
                k.what, per_turn(k.agent, k.turn, 10, 1000), per_turn(k.agent, k.turn, 100, 200),
                per_turn(k.agent, k.turn, 100, 200, 200'000));
  }
  auto began = cpu_us();
  constexpr int starts = 1000;
  for (int i = 0; i < starts; ++i) {
    agent_machine agent{definition, openai_codec().encoder(), run_id{1}};
    REQUIRE(!agent.on(run_started{"a task", {}}, start_time).empty());
  }
  std::printf("start of a run: %.1f us CPU; a run's own size: %zu bytes\n",
              (cpu_us() - began) / starts, sizeof(agent_machine));
  began = cpu_us();
  REQUIRE(define_agent(o));
  std::printf("definition of an agent: %.0f us CPU, once\n", cpu_us() - began);
}

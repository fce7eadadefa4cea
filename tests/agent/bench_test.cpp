// Figures, not tests: run with the tag [.bench].
#include "tests/agent/agent_fixture.hpp"

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

/// CPU of one turn (reply in, snippet out, outcome in, request out) of runs that are `turns` long,
/// averaged over the last ten turns of each.
double per_turn(const std::shared_ptr<const agent_definition>& definition, int turns, int runs) {
  double spent = 0;
  auto outcome = printed(std::string(1024, 'x'));
  for (int r = 0; r < runs; ++r) {
    code_agent agent{definition, openai_codec().encoder(), run_id{1}};
    auto last = agent.on(run_started{"a task", {}}, start_time);
    double began = 0;
    for (int t = 0; t < turns; ++t) {
      if (t == turns - 10)
        began = cpu_us();
      auto said = code("value = compute(" + std::to_string(t) + ")\nprint(value)");
      last = agent.on(said, start_time);
      last = agent.on(outcome, start_time);
    }
    spent += cpu_us() - began;
    REQUIRE(std::holds_alternative<ask_model>(last.back()));
  }
  return spent / (10.0 * runs);
}

}  // namespace

TEST_CASE("CPU per turn with 1 KB observations", "[.bench]") {
  auto o = options_for_tests();
  o.max_steps = 1000;
  auto definition = definition_of(o);
  (void)per_turn(definition, 10, 100);
  std::printf("agent loop, 1 KB observations: %.1f us CPU per turn at turn 10, %.1f at turn 100\n",
              per_turn(definition, 10, 1000), per_turn(definition, 100, 200));
  auto began = cpu_us();
  constexpr int starts = 1000;
  for (int i = 0; i < starts; ++i) {
    code_agent agent{definition, openai_codec().encoder(), run_id{1}};
    REQUIRE(!agent.on(run_started{"a task", {}}, start_time).empty());
  }
  std::printf("start of a run: %.1f us CPU; a run's own size: %zu bytes\n",
              (cpu_us() - began) / starts, sizeof(code_agent));
  began = cpu_us();
  REQUIRE(define_agent(o));
  std::printf("definition of an agent: %.0f us CPU, once\n", cpu_us() - began);
}

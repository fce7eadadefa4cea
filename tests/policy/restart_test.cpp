#include "runtime/policy/restart.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{1h};
const ending crash{false, "segmentation fault"};
const ending normal{true, "done"};

using decision = std::variant<restart_after, forget, give_up>;

bool restarts(const decision& d) {
  return std::holds_alternative<restart_after>(d);
}
bool forgets(const decision& d) {
  return std::holds_alternative<forget>(d);
}
bool gives_up(const decision& d) {
  return std::holds_alternative<give_up>(d);
}

millis delay_of(const decision& d) {
  return std::get<restart_after>(d).delay;
}

restart_settings steady(std::uint32_t most = 1000) {
  return {.max_restarts = most,
          .within = 10s,
          .first_delay = 10ms,
          .longest_delay = 100ms,
          .jitter = false};
}

}  // namespace

// Source: OTP design principles, "Supervisor Behaviour", section "Tuning the restart".
TEST_CASE("restart type and way of ending decide as in OTP", "[restart]") {
  using enum restart_type;
  struct row {
    restart_type type;
    ending how;
    bool comes_back;
  };
  const std::vector<row> table = {{permanent, normal, true},  {permanent, crash, true},
                                  {transient, normal, false}, {transient, crash, true},
                                  {temporary, normal, false}, {temporary, crash, false}};
  for (auto& r : table) {
    restart_policy policy{steady()};
    auto d = policy.on_exit(r.type, r.how, start);
    CHECK(restarts(d) == r.comes_back);
    CHECK(forgets(d) == !r.comes_back);
    CHECK(policy.recent_restarts(start) == (r.comes_back ? 1u : 0u));
  }
}

TEST_CASE("one restart more than allowed within the period gives up, and says why", "[restart]") {
  restart_policy policy{steady(3)};
  for (int i = 0; i < 3; ++i)
    CHECK(restarts(policy.on_exit(restart_type::permanent, crash, start + i * 1s)));
  auto d = policy.on_exit(restart_type::permanent, crash, start + 3s);
  REQUIRE(gives_up(d));
  auto& text = std::get<give_up>(d).why;
  CHECK(text.find("more than 3 restarts") != std::string::npos);
  CHECK(text.find("segmentation fault") != std::string::npos);
}

TEST_CASE("restarts older than the period no longer count", "[restart]") {
  restart_policy policy{steady(2)};
  CHECK(restarts(policy.on_exit(restart_type::permanent, crash, start)));
  CHECK(restarts(policy.on_exit(restart_type::permanent, crash, start + 1s)));
  // Exactly one period old still counts, as in OTP.
  CHECK(gives_up(policy.on_exit(restart_type::permanent, crash, start + 10s)));
  CHECK(restarts(policy.on_exit(restart_type::permanent, crash, start + 10s + 1ms)));
  CHECK(policy.recent_restarts(start + 10s + 1ms) == 2);
  CHECK(policy.recent_restarts(start + 1min) == 0);
}

TEST_CASE("an intensity of zero gives up at the first crash", "[restart]") {
  restart_policy policy{steady(0)};
  CHECK(forgets(policy.on_exit(restart_type::temporary, crash, start)));
  CHECK(gives_up(policy.on_exit(restart_type::transient, crash, start)));
}

TEST_CASE("ends that call for no restart do not use up the intensity", "[restart]") {
  restart_policy policy{steady(1)};
  for (int i = 0; i < 100; ++i)
    CHECK(forgets(policy.on_exit(restart_type::transient, normal, start)));
  CHECK(restarts(policy.on_exit(restart_type::transient, crash, start)));
}

TEST_CASE("the delay doubles up to its limit and falls back after a quiet period", "[restart]") {
  restart_policy policy{steady()};
  auto now = start;
  std::vector<millis> delays;
  for (int i = 0; i < 6; ++i)
    delays.push_back(delay_of(policy.on_exit(restart_type::permanent, crash, now += 1s)));
  CHECK(delays == std::vector<millis>{10ms, 20ms, 40ms, 80ms, 100ms, 100ms});
  CHECK(delay_of(policy.on_exit(restart_type::permanent, crash, now += 10s)) == 100ms);
  CHECK(delay_of(policy.on_exit(restart_type::permanent, crash, now += 10s + 1ms)) == 10ms);
}

TEST_CASE("jitter spreads the delay over all of zero to its limit", "[restart]") {
  restart_settings settings{
    .max_restarts = 100'000, .within = 10s, .first_delay = 1s, .longest_delay = 1s, .jitter = true};
  restart_policy policy{settings, 42};
  double mean = 0;
  millis least = 1h;
  millis most{0};
  constexpr int n = 10'000;
  for (int i = 0; i < n; ++i) {
    auto d = delay_of(policy.on_exit(restart_type::permanent, crash, start));
    mean += static_cast<double>(d.count()) / n;
    least = std::min(least, d);
    most = std::max(most, d);
  }
  CHECK(mean > 485);
  CHECK(mean < 515);
  CHECK(least < 10ms);
  CHECK(most > 990ms);
  CHECK(most <= 1s);
}

TEST_CASE("equal seeds decide equally, other seeds differ", "[restart]") {
  auto delays = [](std::uint64_t seed) {
    restart_policy policy{{.max_restarts = 50, .first_delay = 1s}, seed};
    std::vector<millis> out;
    for (int i = 0; i < 20; ++i)
      out.push_back(delay_of(policy.on_exit(restart_type::permanent, crash, start)));
    return out;
  };
  CHECK(delays(1) == delays(1));
  CHECK(delays(1) != delays(2));
}

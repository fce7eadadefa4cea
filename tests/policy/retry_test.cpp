#include "runtime/policy/retry.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{1h};

std::string_view why(const std::variant<try_again, stop_trying>& next) {
  auto* stop = std::get_if<stop_trying>(&next);
  return stop ? stop->why : "goes on";
}

/// Mean, smallest and largest of many delays before one attempt.
struct spread {
  double mean = 0;
  millis least = millis::max();
  millis most{0};
};

spread sample(const retry_limits& limits, std::uint32_t attempt, std::optional<millis> hint = {}) {
  rng random{42};
  spread s;
  constexpr int n = 20'000;
  for (int i = 0; i < n; ++i) {
    auto d = retry_delay(limits, attempt, hint, random);
    s.mean += static_cast<double>(d.count()) / n;
    s.least = std::min(s.least, d);
    s.most = std::max(s.most, d);
  }
  return s;
}

}  // namespace

TEST_CASE("the delay is uniform from zero to a limit that doubles with each attempt", "[retry]") {
  retry_limits limits{.base = 500ms, .cap = 30s};
  for (std::uint32_t attempt : {2u, 3u, 4u, 7u}) {
    auto limit = 500.0 * std::pow(2.0, attempt - 2);
    auto s = sample(limits, attempt);
    // The mean of n uniform draws has a standard error of limit / sqrt(12 n), here 0.2 % of it.
    CHECK(std::abs(s.mean - limit / 2) < limit * 0.01);
    CHECK(static_cast<double>(s.least.count()) < limit * 0.01);
    CHECK(static_cast<double>(s.most.count()) > limit * 0.99);
    CHECK(static_cast<double>(s.most.count()) <= limit);
  }
}

TEST_CASE("no own delay is longer than the cap, however late the attempt", "[retry]") {
  retry_limits limits{.base = 500ms, .cap = 30s};
  for (std::uint32_t attempt : {9u, 64u, 65u, 1'000'000u, 0xFFFFFFFFu}) {
    auto s = sample(limits, attempt);
    CHECK(s.most <= 30s);
    CHECK(s.most > 29s);
  }
}

TEST_CASE("the server's wait is a floor, and may exceed the cap", "[retry]") {
  retry_limits limits{.base = 500ms, .cap = 1s};
  auto s = sample(limits, 2, 300ms);
  CHECK(s.least == 300ms);
  CHECK(s.most > 490ms);
  rng random{7};
  CHECK(retry_delay(limits, 2, 60s, random) == 60s);
}

TEST_CASE("a base of zero retries at once, and attempts below two count as the second", "[retry]") {
  rng random{7};
  CHECK(retry_delay({.base = 0ms}, 20, std::nullopt, random) == 0ms);
  for (int i = 0; i < 1000; ++i)
    CHECK(retry_delay({.base = 10ms}, 1, std::nullopt, random) <= 10ms);
}

TEST_CASE("the same random state gives the same delays", "[retry]") {
  rng a{9};
  rng b{9};
  for (std::uint32_t attempt = 2; attempt < 10; ++attempt)
    CHECK(retry_delay({}, attempt, {}, a) == retry_delay({}, attempt, {}, b));
}

TEST_CASE("a final failure is not tried again, a transient one is", "[retry]") {
  rng random{1};
  auto next = [&](failure_class kind) {
    return why(after_failure({}, kind, 1, {}, start, never, random));
  };
  CHECK(next(failure_class::auth) == "final");
  CHECK(next(failure_class::quota) == "final");
  CHECK(next(failure_class::cancelled) == "final");
  CHECK(next(failure_class::bad_request) == "final");
  CHECK(next(failure_class::connect) == "goes on");
  CHECK(next(failure_class::rate_limited) == "goes on");
  CHECK(next(failure_class::bad_reply) == "goes on");
}

TEST_CASE("attempts are requests in all: with three, two failures are retried", "[retry]") {
  rng random{1};
  retry_limits limits{.max_attempts = 3};
  auto next = [&](std::uint32_t attempt) {
    return why(after_failure(limits, failure_class::server, attempt, {}, start, never, random));
  };
  CHECK(next(1) == "goes on");
  CHECK(next(2) == "goes on");
  CHECK(next(3) == "attempts");
}

TEST_CASE("a retry that would start at the deadline or later is not made", "[retry]") {
  rng random{1};
  retry_limits limits{.base = 0ms};
  auto next = [&](millis hint, time_point deadline) {
    return why(
      after_failure(limits, failure_class::rate_limited, 1, hint, start, deadline, random));
  };
  CHECK(next(100ms, start + 101ms) == "goes on");
  CHECK(next(100ms, start + 100ms) == "deadline");
  CHECK(next(0ms, start) == "deadline");
  CHECK(next(0ms, start - 1s) == "deadline");
  CHECK(next(100ms, never) == "goes on");
}

TEST_CASE("a wait longer than we accept ends the tries", "[retry]") {
  rng random{1};
  retry_limits limits{.longest_hint = 5min};
  auto next = [&](millis hint) {
    return why(after_failure(limits, failure_class::rate_limited, 1, hint, start, never, random));
  };
  CHECK(next(5min) == "goes on");
  CHECK(next(5min + 1ms) == "retry-after too long");
}

TEST_CASE("a whole chain of tries stays inside its deadline", "[retry]") {
  rng random{3};
  retry_limits limits{.max_attempts = 100, .base = 100ms, .cap = 1s};
  auto deadline = start + 10s;
  auto now = start;
  std::uint32_t attempt = 1;
  while (true) {
    auto next = after_failure(limits, failure_class::server, attempt, {}, now, deadline, random);
    if (auto* stop = std::get_if<stop_trying>(&next)) {
      CHECK(stop->why == "deadline");
      break;
    }
    now += std::get<try_again>(next).delay;
    CHECK(now < deadline);
    ++attempt;
  }
  CHECK(attempt > 10);
}

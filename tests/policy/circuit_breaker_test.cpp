#include "runtime/policy/circuit_breaker.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;
using state = circuit_breaker::state;

namespace {

constexpr time_point start{1h};
constexpr breaker_settings three{.failures = 3, .first_pause = 1s, .longest_pause = 3s};

circuit_breaker opened() {
  circuit_breaker b{three};
  for (int i = 0; i < 3; ++i)
    b.failed(start, start);
  return b;
}

}  // namespace

TEST_CASE("it opens after so many failures in a row", "[circuit_breaker]") {
  circuit_breaker b{three};
  b.failed(start, start);
  b.failed(start, start);
  b.succeeded();
  b.failed(start, start);
  b.failed(start, start);
  CHECK(b.at(start) == state::closed);
  b.failed(start, start);
  CHECK(b.at(start) == state::open);
  CHECK(b.ready_at(start) == start + 1s);
}

TEST_CASE("after the pause one request tries, and the others wait for it", "[circuit_breaker]") {
  auto b = opened();
  auto now = start + 1s;
  CHECK(b.at(now) == state::half_open);
  CHECK(b.ready_at(now) == now);
  b.started(now);
  CHECK(b.ready_at(now) == never);
  b.succeeded();
  CHECK(b.at(now) == state::closed);
  CHECK(b.ready_at(now) == now);
}

TEST_CASE("each failed attempt at coming back doubles the pause, up to the longest",
          "[circuit_breaker]") {
  auto b = opened();
  auto now = start;
  for (auto pause : {1s, 2s, 3s, 3s}) {
    CHECK(b.ready_at(now) == now + pause);
    now += pause;
    b.started(now);
    b.failed(now, now);
  }
  CHECK(b.failed_probes() == 4);
  b.started(now + 3s);
  b.succeeded();
  CHECK(b.failed_probes() == 0);
}

TEST_CASE("failures of requests from before it opened are no news", "[circuit_breaker]") {
  auto b = opened();
  b.failed(start - 1s, start + 500ms);
  CHECK(b.ready_at(start + 500ms) == start + 1s);
  CHECK(b.failed_probes() == 0);
}

TEST_CASE("an attempt without a verdict lets another one try", "[circuit_breaker]") {
  auto b = opened();
  auto now = start + 1s;
  b.started(now);
  b.undecided(start - 1s);  // an old one's end
  CHECK(b.ready_at(now) == never);
  b.undecided(now);
  CHECK(b.ready_at(now) == now);
}

TEST_CASE("with zero failures it never opens", "[circuit_breaker]") {
  circuit_breaker b{{.failures = 0}};
  for (int i = 0; i < 100; ++i)
    b.failed(start, start);
  CHECK(b.at(start) == state::closed);
}

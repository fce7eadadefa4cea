#include "runtime/core/random.hpp"
#include "runtime/policy/rate_limit.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{1h};
constexpr rate_limit::amounts one{1, 100, 80, 20};

/// Requests of one size that go in that time, each as soon as it may.
std::size_t sent_in(rate_limit& limit, time_point& now, steady_clock::duration span,
                    const rate_limit::amounts& need = one) {
  std::size_t n = 0;
  for (auto until = now + span; now < until;) {
    auto when = limit.ready_at(need, now);
    if (when > now) {
      now = std::min(when, until);
      continue;
    }
    static_cast<void>(limit.take(need, now));
    ++n;
  }
  return n;
}

rate_report stated(double limit, double remaining, millis reset) {
  return {{rate_quantity::requests, limit, remaining, reset, false}};
}

}  // namespace

TEST_CASE("without any limit all may go at once", "[rate_limit]") {
  rate_limit limit;
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(limit.ready_at(one, start) == start);
    static_cast<void>(limit.take(one, start));
  }
}

TEST_CASE("a told limit is spread over the minute", "[rate_limit]") {
  rate_limit limit{{.requests = 60, .tokens = 0}};
  auto now = start;
  CHECK(sent_in(limit, now, 1s) <= 2);
  auto n = sent_in(limit, now, 59s);
  CHECK(n >= 57);
  CHECK(n <= 60);
}

TEST_CASE("a told token limit counts the tokens, and what was reserved too much comes back",
          "[rate_limit]") {
  rate_limit limit{{.requests = 0, .tokens = 6'000}};
  auto now = start;
  auto all = sent_in(limit, now, 60s);
  CHECK(all >= 58);
  CHECK(all <= 61);
  std::size_t n = 0;
  for (auto until = now + 60s; now < until;) {
    auto when = limit.ready_at(one, now);
    if (when > now) {
      now = std::min(when, until);
      continue;
    }
    auto p = limit.take(one, now);
    limit.answered(p, {1, 50, 40, 10}, {}, now);  // half of what was thought
    ++n;
  }
  CHECK(n >= 115);
  CHECK(n <= 122);
}

TEST_CASE("another limit may be told at any time", "[rate_limit]") {
  rate_limit limit{{.requests = 60, .tokens = 0}};
  auto now = start;
  sent_in(limit, now, 10s);
  limit.tell({.requests = 600, .tokens = 0});
  auto n = sent_in(limit, now, 10s);
  CHECK(n >= 95);
  CHECK(n <= 105);
}

TEST_CASE("what a server says is left is spread until its reset", "[rate_limit]") {
  rate_limit limit;
  auto p = limit.take(one, start);
  limit.answered(p, one, stated(100, 10, 20s), start);
  auto now = start;
  CHECK(sent_in(limit, now, 10s) <= 6);
  auto until_reset = sent_in(limit, now, 9900ms);
  CHECK(until_reset >= 4);
  CHECK(until_reset <= 6);
}

TEST_CASE("when nothing is left all wait for the reset", "[rate_limit]") {
  rate_limit limit;
  auto p = limit.take(one, start);
  limit.answered(p, one, stated(100, 0, 20s), start);
  auto now = start;
  CHECK(sent_in(limit, now, 19s) == 0);
  CHECK(sent_in(limit, now, 2s) > 0);
}

TEST_CASE("a reset that is hours away is not waited for", "[rate_limit]") {
  rate_limit limit;
  auto p = limit.take(one, start);
  limit.answered(p, one, stated(200, 0, 8h), start);
  CHECK(limit.ready_at(one, start) == start + 5min);
  CHECK(limit.ready_at(one, start + 5min) == start + 5min);
}

TEST_CASE("a limit below one is none", "[rate_limit]") {
  for (auto limit : {0.0, 0.001}) {
    rate_limit limits;
    auto now = start;
    for (int i = 0; i < 3; ++i) {
      auto p = limits.take(one, now);
      limits.answered(p, one, {{rate_quantity::requests, limit, 0, millis{-1}, false}}, now);
      CHECK(limits.ready_at(one, now) == now);
    }
    auto p = limits.take(one, now);
    limits.refused(p, {{rate_quantity::tokens, limit, 0, 360s, false}}, 1s, now);
    CHECK(limits.ready_at(one, now) == now + 1s);
  }
}

TEST_CASE("what was stated is forgotten after five minutes", "[rate_limit]") {
  rate_limit limit;
  auto now = start;
  for (int i = 0; i < 2; ++i) {  // it counts tokens by the dozen, and goes on without a word
    auto p = limit.take({1, 1'000, 900, 100}, now);
    limit.refused(p, {{rate_quantity::tokens, 12, 0, 360s, false}}, 1s, now);
  }
  now += 1s;
  for (int i = 0; i < 8; ++i)
    limit.lost(limit.take({1, 1'000, 900, 100}, now), {}, now);
  now = limit.held_until();
  CHECK(limit.ready_at(one, now) > now + 1min);
  CHECK(limit.ready_at(one, now) <= now + 5min);
  CHECK(limit.ready_at(one, now + 5min) == now + 5min);
}

TEST_CASE("what went after the request that the server speaks of is counted", "[rate_limit]") {
  rate_limit limit;
  auto first = limit.take(one, start);
  for (int i = 0; i < 10; ++i)
    static_cast<void>(limit.take(one, start));
  limit.answered(first, one, stated(100, 10, 20s), start + 1s);
  CHECK(limit.ready_at(one, start + 1s) >= start + 20s);
}

TEST_CASE("an older word than the newest is ignored", "[rate_limit]") {
  rate_limit limit;
  auto first = limit.take(one, start);
  auto second = limit.take(one, start);
  limit.answered(second, one, stated(100, 0, 20s), start);
  limit.answered(first, one, stated(100, 99, 20s), start);
  CHECK(limit.ready_at(one, start) >= start + 20s);
}

TEST_CASE("a refusal holds everybody for as long as the server asks", "[rate_limit]") {
  rate_limit limit;
  auto p = limit.take(one, start);
  limit.refused(p, {}, 2000ms, start);
  CHECK(limit.ready_at(one, start) == start + 2s);
  CHECK(limit.ready_at(one, start + 2s) == start + 2s);
}

TEST_CASE("a refusal's own wait is not outlasted by a reset that comes later", "[rate_limit]") {
  // aimock 1.43 says of a bucket: nothing left, all of it in 6 minutes, and to come back in a
  // second.
  rate_limit limit;
  auto p = limit.take(one, start);
  limit.refused(p, {{rate_quantity::tokens, 150'000, 0, 360s, false}}, 1s, start);
  CHECK(limit.ready_at(one, start) == start + 1s);
  CHECK(limit.ready_at(one, start + 1s) == start + 1s);
  auto now = start + 1s;
  CHECK(sent_in(limit, now, 2s) >= 20);  // of 100 tokens each, where 25 a second come in
  CHECK(sent_in(limit, now, 58s) >= 700);
}

TEST_CASE("a wait that did not help three times gives way to a cooldown, up to the reset",
          "[rate_limit]") {
  rate_limit limit;
  auto now = start;
  auto reset = start + 30s;
  for (auto pause : {1s, 1s, 1s, 8s, 16s, 3s, 1s}) {
    auto left = std::max<steady_clock::duration>(reset - now, 0s);
    auto p = limit.take(one, now);
    limit.refused(p, stated(60, 0, std::chrono::duration_cast<millis>(left)), 1s, now);
    now += pause;
    CHECK(limit.ready_at(one, now - 1ms) > now - 1ms);
    CHECK(limit.ready_at(one, now) == now);
  }
}

TEST_CASE("refusals by chance that state a far reset stall nobody for minutes", "[rate_limit]") {
  rate_limit limit;
  auto now = start;
  for (int i = 0; i < 6; ++i) {  // a chance of one in 1 400, where 30 % are refused
    auto p = limit.take(one, now);
    limit.refused(p, {{rate_quantity::tokens, 150'000, 0, 360s, false}}, 1s, now);
    now = limit.ready_at(one, now);
  }
  CHECK(now <= start + 60s);
}

TEST_CASE("without the server's word the cooldown doubles until something is answered",
          "[rate_limit]") {
  rate_limit limit;
  auto now = start;
  for (auto cooldown : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    auto p = limit.take(one, now);
    limit.refused(p, {}, std::nullopt, now);
    CHECK(limit.held_until() == now + cooldown);
    now = limit.held_until();
    REQUIRE(limit.ready_at(one, now) == now);
  }
  auto p = limit.take(one, now);
  limit.answered(p, one, {}, now);
  now += 1s;
  p = limit.take(one, now);
  limit.refused(p, {}, std::nullopt, now);
  CHECK(limit.held_until() == now + 1s);
}

TEST_CASE("refusals of what was under way are one refusal", "[rate_limit]") {
  rate_limit limit;
  auto a = limit.take(one, start);
  auto b = limit.take(one, start);
  limit.refused(a, {}, std::nullopt, start + 50ms);
  limit.refused(b, {}, std::nullopt, start + 60ms);
  CHECK(limit.held_until() == start + 50ms + 1s);
}

TEST_CASE("the rate between two refusals is kept to, and grows slowly", "[rate_limit]") {
  rate_limit limit;
  auto refuse = [&](time_point now) {
    auto p = limit.take(one, now);
    limit.refused(p, {}, 0ms, now);
  };
  auto now = start;
  refuse(now);
  for (int i = 1; i <= 100; ++i) {  // ten a second
    now = start + i * 100ms;
    limit.answered(limit.take(one, now), one, {}, now);
  }
  refuse(now);
  now += 1ms;
  auto first = sent_in(limit, now, 10s);
  CHECK(first >= 90);
  CHECK(first <= 105);
  sent_in(limit, now, 5min);
  CHECK(sent_in(limit, now, 10s) > 120);
}

TEST_CASE("a storm of refusals is forgotten within two minutes of its end", "[rate_limit]") {
  rate_limit limit;
  rng random{4};
  auto now = start;
  // Twenty a second, as fast as callers ask; of a minute's requests seven in ten are refused.
  auto answered_in = [&](steady_clock::duration span, double refused_share) {
    std::size_t n = 0;
    for (auto until = now + span; now < until;) {
      auto when = std::max(limit.ready_at(one, now), now + 50ms);
      now = std::min(when, until);
      if (limit.ready_at(one, now) > now)
        continue;
      auto p = limit.take(one, now);
      if (random.uniform() < refused_share) {
        limit.refused(p, {}, 1'500ms, now);
      } else {
        limit.answered(p, one, {}, now);
        ++n;
      }
    }
    return n;
  };
  CHECK(answered_in(120s, 0) > 2'000);
  answered_in(60s, 0.7);
  answered_in(120s, 0);
  CHECK(answered_in(60s, 0) > 900);
}

#include "runtime/net/happy_eyeballs.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using eyeballs = happy_eyeballs;
constexpr auto v6 = address_family::v6;
constexpr auto v4 = address_family::v4;
constexpr time_point start{1h};

eyeballs::step try_one(address_family family, std::size_t index) {
  return eyeballs::attempt{family, index};
}

eyeballs::step wait_until(time_point when) {
  return eyeballs::pause{when};
}

const eyeballs::step for_an_event = eyeballs::pause{never};
const eyeballs::step over = eyeballs::lost{};

eyeballs with(std::size_t sixes, std::size_t fours) {
  eyeballs race;
  race.found(v6, sixes, start);
  race.found(v4, fours, start);
  return race;
}

}  // namespace

// The expected times and orders are those of RFC 8305: 50 ms resolution delay (section 3),
// interleaving from IPv6 on (section 4), 250 ms between attempts (section 5).

TEST_CASE("IPv6 goes first and the families take turns", "[happy_eyeballs]") {
  auto race = with(3, 2);
  auto now = start;
  CHECK(race.next(now) == try_one(v6, 0));
  CHECK(race.next(now) == wait_until(start + 250ms));
  CHECK(race.next(now + 249ms) == wait_until(start + 250ms));
  CHECK(race.next(now += 250ms) == try_one(v4, 0));
  CHECK(race.next(now += 250ms) == try_one(v6, 1));
  CHECK(race.next(now += 250ms) == try_one(v4, 1));
  CHECK(race.next(now += 250ms) == try_one(v6, 2));
  CHECK(race.next(now += 250ms) == for_an_event);
}

TEST_CASE("an attempt that fails starts the next at once", "[happy_eyeballs]") {
  auto race = with(1, 2);
  CHECK(race.next(start) == try_one(v6, 0));
  race.attempt_failed();
  CHECK(race.next(start + 1ms) == try_one(v4, 0));
  CHECK(race.next(start + 1ms) == wait_until(start + 251ms));
  race.attempt_failed();
  CHECK(race.next(start + 2ms) == try_one(v4, 1));
  CHECK(race.next(start + 2ms) == for_an_event);
  race.attempt_failed();
  CHECK(race.next(start + 3ms) == over);
}

TEST_CASE("a race is lost only when no attempt is running", "[happy_eyeballs]") {
  auto race = with(1, 1);
  CHECK(race.next(start) == try_one(v6, 0));
  CHECK(race.next(start + 250ms) == try_one(v4, 0));
  race.attempt_failed();
  CHECK(race.next(start + 300ms) == for_an_event);
  race.attempt_failed();
  CHECK(race.next(start + 300ms) == over);
}

TEST_CASE("IPv4's addresses wait 50 ms for IPv6's, and no longer", "[happy_eyeballs]") {
  eyeballs late;
  CHECK(late.next(start) == for_an_event);
  late.found(v4, 1, start);
  CHECK(late.next(start) == wait_until(start + 50ms));
  CHECK(late.next(start + 50ms) == try_one(v4, 0));
  late.found(v6, 1, start + 60ms);
  CHECK(late.next(start + 60ms) == wait_until(start + 300ms));
  CHECK(late.next(start + 300ms) == try_one(v6, 0));

  eyeballs in_time;
  in_time.found(v4, 1, start);
  in_time.found(v6, 1, start + 20ms);
  CHECK(in_time.next(start + 20ms) == try_one(v6, 0));

  eyeballs none;
  none.found(v4, 1, start);
  none.found(v6, 0, start + 10ms);
  CHECK(none.next(start + 10ms) == try_one(v4, 0));
}

TEST_CASE("IPv6's addresses wait for nothing", "[happy_eyeballs]") {
  eyeballs race;
  race.found(v6, 1, start);
  CHECK(race.next(start) == try_one(v6, 0));
  race.attempt_failed();
  CHECK(race.next(start + 1ms) == for_an_event);
  race.found(v4, 1, start + 5ms);
  CHECK(race.next(start + 5ms) == try_one(v4, 0));
}

TEST_CASE("a host with no address is lost at once, one with many after 16", "[happy_eyeballs]") {
  auto none = with(0, 0);
  CHECK(none.next(start) == over);
  auto many = with(100, 100);
  for (int i = 0; i < 16; ++i) {
    CHECK(std::holds_alternative<eyeballs::attempt>(many.next(start)));
    many.attempt_failed();
  }
  CHECK(many.next(start) == over);
}

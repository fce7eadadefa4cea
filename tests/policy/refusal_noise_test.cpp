#include "runtime/policy/refusal_noise.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

/// Numbers the requests that it sends.
struct sender {
  refusal_meaning after(int admitted, bool unexpected = true) {
    for (int i = 0; i <= admitted; ++i)
      pass();
    return noise.refused(number, unexpected);
  }

  bool pass() {
    ++number;
    return noise.sent();
  }

  /// Two refusals at a rate that went well.
  void suspect() {
    REQUIRE(after(50, false) == refusal_meaning::limit);
    REQUIRE(after(50) == refusal_meaning::limit);
    REQUIRE(after(50) == refusal_meaning::unclear);
    REQUIRE(noise.on_trial());
  }

  refusal_noise noise;
  std::uint64_t number = 0;
};

}  // namespace

TEST_CASE("what is refused at half the rate too is refused by chance", "[refusal_noise]") {
  sender s;
  s.suspect();
  CHECK(s.after(50) == refusal_meaning::chance);
  CHECK(s.after(50) == refusal_meaning::found);
  CHECK_FALSE(s.noise.on_trial());
  CHECK(s.noise.share() > 0.015);
  CHECK(s.noise.share() < 0.035);
  for (int i = 0; i < 20; ++i)
    CHECK(s.after(50) == refusal_meaning::chance);
}

TEST_CASE("refusals that come thicker than chance mean a limit", "[refusal_noise]") {
  sender s;
  s.suspect();
  static_cast<void>(s.after(50));
  REQUIRE(s.after(50) == refusal_meaning::found);
  int tolerated = 0;
  while (s.after(0) == refusal_meaning::chance)
    ++tolerated;
  CHECK(tolerated >= 3);
  CHECK(tolerated <= 10);
}

TEST_CASE("when half the rate is not refused, there was a limit", "[refusal_noise]") {
  sender s;
  s.suspect();
  int n = 0;
  while (!s.pass())
    ++n;
  CHECK(n <= 250);
  CHECK_FALSE(s.noise.on_trial());
  CHECK(s.noise.share() == 0);
  CHECK(s.after(0) == refusal_meaning::limit);
}

TEST_CASE("a trial in which all is refused ends at once", "[refusal_noise]") {
  sender s;
  s.suspect();
  int refused = 1;
  while (s.after(0) == refusal_meaning::chance)
    ++refused;
  CHECK(refused <= 4);
  CHECK_FALSE(s.noise.on_trial());
}

TEST_CASE("refusals at a rate that was never tried, or of most requests, begin no trial",
          "[refusal_noise]") {
  sender s;
  for (int i = 0; i < 10; ++i)
    CHECK(s.after(50, false) == refusal_meaning::limit);
  for (int i = 0; i < 100; ++i)
    CHECK(s.after(1) == refusal_meaning::limit);
  CHECK_FALSE(s.noise.on_trial());
}

#include "runtime/policy/concurrency.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{1h};

/// A round of answers while every place is taken.
void round(concurrency& c) {
  for (auto n = c.limit(); n > 0; --n)
    c.answered(c.limit());
}

}  // namespace

TEST_CASE("it doubles with each round of answers, up to the most", "[concurrency]") {
  concurrency c{{.first = 4, .most = 100}};
  for (std::size_t want : {8u, 16u, 32u, 64u, 100u, 100u}) {
    round(c);
    CHECK(c.limit() == want);
  }
}

TEST_CASE("it does not grow by places that nobody used", "[concurrency]") {
  concurrency c{{.first = 4, .most = 100}};
  for (int i = 0; i < 50; ++i)
    c.answered(3);
  CHECK(c.limit() == 4);
}

TEST_CASE("an overload halves it; then it grows fast to three quarters, and slowly on",
          "[concurrency]") {
  concurrency c{{.first = 64, .most = 64}};
  c.refused(true, start, start + 1s);
  CHECK(c.limit() == 32);
  for (int i = 0; i < 16; ++i)
    c.answered(c.limit());
  CHECK(c.limit() == 48);
  round(c);
  CHECK(c.limit() <= 49);
}

TEST_CASE("requests that were under way at a cut cut no more", "[concurrency]") {
  concurrency c{{.first = 64, .most = 64}};
  c.refused(false, start, start + 1s);
  c.refused(false, start, start + 2s);
  CHECK(c.limit() == 32);
  c.refused(false, start + 1s, start + 2s);
  CHECK(c.limit() == 16);
}

TEST_CASE("one place is always left, and the most may be told anew", "[concurrency]") {
  concurrency c{{.first = 2, .most = 4}};
  for (int i = 1; i < 9; ++i)
    c.refused(true, start + i * 1s, start + i * 1s);
  CHECK(c.limit() == 1);
  concurrency d{{.first = 8, .most = 8}};
  d.set_most(3);
  CHECK(d.limit() == 3);
  d.set_most(5);
  round(d);
  CHECK(d.limit() == 5);
}

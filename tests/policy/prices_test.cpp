#include "runtime/policy/prices.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>

using namespace troupe;

namespace {

bool near(double a, double b) {
  return std::abs(a - b) < 1e-12;
}

}  // namespace

TEST_CASE("each class of tokens has its price", "[prices]") {
  price p{.input = 3, .output = 15, .cached_input = 0.3, .cache_write = 3.75, .as_of = ""};
  token_usage u;
  u.input = 1'000'000;
  CHECK(near(p.of(u), 3));
  u.cached = 400'000;
  u.cache_written = 100'000;
  CHECK(near(p.of(u), 0.5 * 3 + 0.4 * 0.3 + 0.1 * 3.75));
  u.output = 200'000;
  u.reasoning = 150'000;  // part of the output
  CHECK(near(p.of(u), 0.5 * 3 + 0.4 * 0.3 + 0.1 * 3.75 + 0.2 * 15));
}

TEST_CASE("without prices of their own, cached tokens cost as others", "[prices]") {
  price p{.input = 2, .output = 8, .cached_input = {}, .cache_write = {}, .as_of = ""};
  token_usage u;
  u.input = 1'000;
  u.cached = 900;
  CHECK(near(p.of(u), 0.002));
  u.cached = 5'000;  // more than the whole: a server's mistake
  CHECK(near(p.of(u), 0.002));
}

TEST_CASE("a price is that of the model named, and of no other", "[prices]") {
  price_list list;
  list.models["openai/gpt-4.1"] = {
    .input = 2, .output = 8, .cached_input = {}, .cache_write = {}, .as_of = ""};
  CHECK(list.find("openai/gpt-4.1") != nullptr);
  CHECK(list.find("openai/gpt-4.1-mini") == nullptr);
  CHECK(list.find("gpt-4.1") == nullptr);
}

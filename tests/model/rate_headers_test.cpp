#include "runtime/model/rate_headers.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using headers = std::vector<std::pair<std::string, std::string>>;

const rate_word& word(const rate_report& r, rate_quantity of) {
  for (auto& w : r)
    if (w.of == of)
      return w;
  FAIL("the quantity is not there");
  return r.front();
}

}  // namespace

// The values are those of the table in OpenAI's guide "Rate limits", section "Rate limits in
// headers".
TEST_CASE("OpenAI's rate headers are read", "[rate_headers]") {
  auto r = rates_stated(headers{{"x-ratelimit-limit-requests", "60"},
                                {"x-ratelimit-limit-tokens", "150000"},
                                {"x-ratelimit-remaining-requests", "59"},
                                {"x-ratelimit-remaining-tokens", "149984"},
                                {"x-ratelimit-reset-requests", "1s"},
                                {"x-ratelimit-reset-tokens", "6m0s"}});
  CHECK(r.size() == 2);
  CHECK(word(r, rate_quantity::requests) == rate_word{rate_quantity::requests, 60, 59, 1s, false});
  CHECK(word(r, rate_quantity::tokens)
        == rate_word{rate_quantity::tokens, 150'000, 149'984, 6min, false});
}

// Header names as in Anthropic's API documentation, "Rate limits", section "Response headers".
TEST_CASE("Anthropic's rate headers are read, with resets that are dates", "[rate_headers]") {
  auto r = rates_stated(headers{{"date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                                {"anthropic-ratelimit-requests-limit", "50"},
                                {"anthropic-ratelimit-requests-remaining", "49"},
                                {"anthropic-ratelimit-requests-reset", "1994-11-06T08:49:39Z"},
                                {"anthropic-ratelimit-input-tokens-limit", "40000"},
                                {"anthropic-ratelimit-input-tokens-remaining", "39000"},
                                {"anthropic-ratelimit-input-tokens-reset", "1994-11-06T08:50:37Z"},
                                {"anthropic-ratelimit-output-tokens-remaining", "7000"}});
  CHECK(word(r, rate_quantity::requests) == rate_word{rate_quantity::requests, 50, 49, 2s, true});
  CHECK(word(r, rate_quantity::input_tokens)
        == rate_word{rate_quantity::input_tokens, 40'000, 39'000, 60s, true});
  CHECK(word(r, rate_quantity::output_tokens).limit == -1);
}

TEST_CASE("what no server should send is left out", "[rate_headers]") {
  CHECK(rates_stated(headers{{"content-type", "application/json"}}).empty());
  CHECK(rates_stated(headers{{"x-ratelimit-limit-apples", "3"}, {"x-ratelimit-", "3"}}).empty());
  auto r = rates_stated(headers{{"x-ratelimit-limit-requests", "many"},
                                {"x-ratelimit-remaining-requests", "-4"},
                                {"x-ratelimit-reset-requests", "soon"}});
  CHECK(word(r, rate_quantity::requests) == rate_word{});
  r = rates_stated(headers{{"x-ratelimit-limit-requests", "1e308"},
                           {"x-ratelimit-remaining-requests", "nan"},
                           {"x-ratelimit-reset-requests", "99999999999999999999h"}});
  CHECK(word(r, rate_quantity::requests) == rate_word{});
}

TEST_CASE("spans are read in the form of Go's durations", "[rate_headers]") {
  CHECK(parse_span("6m0s") == 6min);
  CHECK(parse_span("1h2m3.5s") == 3'723'500ms);
  CHECK(parse_span("20ms") == 20ms);
  CHECK(parse_span("0s") == 0ms);
  CHECK(parse_span("1.2") == 1'200ms);
  CHECK(parse_span("150us") == 1ms);
  CHECK(!parse_span(""));
  CHECK(!parse_span("3x"));
  CHECK(!parse_span("-1s"));
  CHECK(!parse_span("900d"));
}

// The examples of RFC 3339, section 5.8.
TEST_CASE("dates are read as RFC 3339 has them", "[rate_headers]") {
  CHECK(parse_rfc3339("1985-04-12T23:20:50.52Z") == 482'196'051);
  CHECK(parse_rfc3339("1996-12-19T16:39:57-08:00") == 851'042'397);
  CHECK(parse_rfc3339("1990-12-31T23:59:60Z") == 662'688'000);
  CHECK(parse_rfc3339("1937-01-01T12:00:27.87+00:20") == -1'041'337'172);
  CHECK(!parse_rfc3339("1985-04-12 23:20"));
  CHECK(!parse_rfc3339("1985-13-12T23:20:50Z"));
  CHECK(!parse_rfc3339("1985-04-12T23:20:50"));
}

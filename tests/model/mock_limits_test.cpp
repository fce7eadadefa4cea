#include "runtime/model/mock_limits.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{};
constexpr std::int64_t wall = 1'700'000'000'000'000;  // 2023-11-14T22:13:20Z

std::map<std::string, std::string> as_map(const header_list& headers) {
  return {headers.begin(), headers.end()};
}

token_usage tokens(std::uint64_t input, std::uint64_t output = 0) {
  token_usage u;
  u.input = input;
  u.output = output;
  return u;
}

}  // namespace

TEST_CASE("a minute's requests may come at once, the next when one is free again", "[limits]") {
  mock_limits limits{{.requests = 60}, start};
  rng random{1};
  for (int i = 0; i < 60; ++i)
    REQUIRE(!limits.admit({}, 0, start, random));
  auto denied = limits.admit({}, 0, start, random);
  REQUIRE(denied);
  CHECK(denied->of == "requests");
  CHECK(denied->limit == 60);
  CHECK(denied->wait == 1000ms);
  CHECK(limits.admit({}, 0, start + 999ms, random));
  CHECK(!limits.admit({}, 0, start + 1000ms, random));
  CHECK(limits.admit({}, 0, start + 1000ms, random));
}

TEST_CASE("over many minutes no more than the limit is let in", "[limits]") {
  mock_limits limits{{.requests = 600, .burst = 1s}, start};
  rng random{1};
  int admitted = 0;
  for (int ms = 0; ms < 600'000; ms += 10)
    admitted += limits.admit({}, 0, start + millis{ms}, random) ? 0 : 1;
  CHECK(admitted >= 5990);  // ten minutes at 600
  CHECK(admitted <= 6010);  // and what may come at once
}

TEST_CASE("tokens are paid for together and by kind; what is turned away pays nothing",
          "[limits]") {
  mock_limits limits{{.tokens = 1000, .input_tokens = 900, .output_tokens = 60}, start};
  rng random{1};
  CHECK(!limits.admit(tokens(500, 50), 0, start, random));
  auto denied = limits.admit(tokens(100, 40), 0, start, random);
  REQUIRE(denied);
  CHECK(denied->of == "output-tokens");
  CHECK(denied->wait == 30s);
  denied = limits.admit(tokens(800, 10), 0, start, random);
  REQUIRE(denied);
  CHECK(denied->of == "input-tokens");
  CHECK(!limits.admit(tokens(400, 10), 0, start, random));
}

TEST_CASE("a request larger than the limit itself will never fit", "[limits]") {
  mock_limits limits{{.tokens = 1000}, start};
  rng random{1};
  auto denied = limits.admit(tokens(1001), 0, start, random);
  REQUIRE(denied);
  CHECK(!denied->wait);
}

TEST_CASE("only a share of what exceeds a limit is turned away, if asked for", "[limits]") {
  mock_limits limits{{.requests = 1, .reject = 0.3}, start};
  rng random{42};
  int denied = 0;
  for (int i = 0; i < 4000; ++i)
    denied += limits.admit({}, 0, start, random) ? 1 : 0;
  CHECK(denied > 1100);  // 1200, with a standard deviation of 29
  CHECK(denied < 1300);
}

TEST_CASE("requests in flight are limited too", "[limits]") {
  mock_limits limits{{.concurrent = 3}, start};
  rng random{1};
  CHECK(!limits.admit({}, 2, start, random));
  CHECK(limits.admit({}, 3, start, random));
}

TEST_CASE("OpenAI's headers say limit, rest and time until full", "[limits]") {
  // Names and form: platform.openai.com/docs/guides/rate-limits, "Rate limits in headers".
  mock_limits limits{{.requests = 60, .tokens = 150'000}, start};
  rng random{1};
  CHECK(!limits.admit(tokens(16), 0, start, random));
  auto h = as_map(limits.headers(wire_format::openai_chat, start, wall));
  CHECK(h
        == std::map<std::string, std::string>{{"x-ratelimit-limit-requests", "60"},
                                              {"x-ratelimit-limit-tokens", "150000"},
                                              {"x-ratelimit-remaining-requests", "59"},
                                              {"x-ratelimit-remaining-tokens", "149984"},
                                              {"x-ratelimit-reset-requests", "1s"},
                                              {"x-ratelimit-reset-tokens", "7ms"}});
}

TEST_CASE("Anthropic's headers give the time of day when it is full", "[limits]") {
  // docs.claude.com/en/api/rate-limits, "Response headers": resets in RFC 3339.
  mock_limits limits{{.requests = 60, .input_tokens = 6000}, start};
  rng random{1};
  CHECK(!limits.admit(tokens(1000), 0, start, random));
  auto h = as_map(limits.headers(wire_format::anthropic, start, wall));
  CHECK(h
        == std::map<std::string, std::string>{
          {"anthropic-ratelimit-requests-limit", "60"},
          {"anthropic-ratelimit-requests-remaining", "59"},
          {"anthropic-ratelimit-requests-reset", "2023-11-14T22:13:21Z"},
          {"anthropic-ratelimit-input-tokens-limit", "6000"},
          {"anthropic-ratelimit-input-tokens-remaining", "5000"},
          {"anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:13:30Z"}});
}

TEST_CASE("a server without limits, or that keeps them to itself, sends no headers", "[limits]") {
  CHECK(mock_limits({}, start).headers(wire_format::openai_chat, start, wall).empty());
  mock_limits quiet{{.requests = 5, .headers = false}, start};
  CHECK(quiet.headers(wire_format::anthropic, start, wall).empty());
}

TEST_CASE("spans are written as OpenAI writes them", "[limits]") {
  // "1s", "6m0s": platform.openai.com/docs/guides/rate-limits; the others by the same rule (Go's).
  CHECK(openai_span(0ms) == "0ms");
  CHECK(openai_span(120ms) == "120ms");
  CHECK(openai_span(1s) == "1s");
  CHECK(openai_span(1500ms) == "1.5s");
  CHECK(openai_span(7661ms) == "7.661s");
  CHECK(openai_span(6min) == "6m0s");
  CHECK(openai_span(1h + 30s) == "1h0m30s");
}

TEST_CASE("the wait is given in whole seconds, rounded up, and to OpenAI's clients in ms",
          "[limits]") {
  header_list openai;
  add_retry_after(openai, wire_format::openai_responses, 1200ms);
  CHECK(openai == header_list{{"retry-after", "2"}, {"retry-after-ms", "1200"}});
  header_list anthropic;
  add_retry_after(anthropic, wire_format::anthropic, 1200ms);
  CHECK(anthropic == header_list{{"retry-after", "2"}});
}

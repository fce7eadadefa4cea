#include "runtime/model/http_wait.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

std::optional<millis> after_header(std::string value) {
  return wait_asked({{"date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"retry-after", std::move(value)}});
}

}  // namespace

// The example of RFC 9110, section 5.6.7; the number from GNU date.
TEST_CASE("an HTTP date is read to the second", "[wait]") {
  CHECK(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
  CHECK(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT") == 0);
  CHECK(parse_http_date("Thu, 29 Feb 2024 23:59:60 GMT") == 1709251200);
}

TEST_CASE("what is not an HTTP date is refused", "[wait]") {
  for (auto* text : {"", "soon", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
                     "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
                     "Sun, -6 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"})
    CHECK(parse_http_date(text) == std::nullopt);
}

TEST_CASE("seconds and dates are both waits", "[wait]") {
  CHECK(after_header("7") == 7s);
  CHECK(after_header(" 0.25 ") == 250ms);
  CHECK(after_header("0") == 0s);
  CHECK(after_header("Sun, 06 Nov 1994 08:50:07 GMT") == 30s);
}

TEST_CASE("a date is counted from now when the answer has none", "[wait]") {
  auto span = wait_asked({{"retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"}});
  CHECK(span == 0ms);
  CHECK(wait_asked({{"retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"}}) == 720h);
}

TEST_CASE("milliseconds win over seconds, unless they cannot be read", "[wait]") {
  CHECK(wait_asked({{"retry-after", "7"}, {"retry-after-ms", "20"}}) == 20ms);
  CHECK(wait_asked({{"retry-after", "7"}, {"retry-after-ms", "abc"}}) == 7s);
}

TEST_CASE("absurd waits are clamped, and nonsense is no wait", "[wait]") {
  CHECK(after_header("-5") == 0s);
  CHECK(after_header("999999999999999999999") == 720h);
  for (auto* text : {"", "nan", "inf", "1e3", "7 s", "0x10", "tomorrow"})
    CHECK(after_header(text) == std::nullopt);
  CHECK(wait_asked({}) == std::nullopt);
}

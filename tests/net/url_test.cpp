#include "runtime/net/http.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

url good(std::string_view text) {
  auto u = parse_url(text);
  INFO((u ? std::string{} : u.error().detail));
  REQUIRE(u);
  return *u;
}

std::string bad(std::string_view text) {
  auto u = parse_url(text);
  REQUIRE(!u);
  CHECK(u.error().code == errc::invalid_argument);
  CHECK(u.error().detail.find("write http://host") != std::string::npos);
  return u.error().detail;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a URL gives scheme, host, port and path", "[url]") {
  CHECK(good("https://api.openai.com/v1") == url{"https", "api.openai.com", 443, "/v1"});
  CHECK(good("http://localhost:8080") == url{"http", "localhost", 8080, ""});
  CHECK(good("http://10.0.0.1/") == url{"http", "10.0.0.1", 80, ""});
  CHECK(good("HTTP://Example.COM/Path/a%20b//") == url{"http", "example.com", 80, "/Path/a%20b"});
  CHECK(good("http://[::1]:8000/v1") == url{"http", "::1", 8000, "/v1"});
  CHECK(good("https://[FE80::1]") == url{"https", "fe80::1", 443, ""});
  CHECK(good("http://h:65535").port == 65535);
}

TEST_CASE("a unix URL names a socket by its path", "[url]") {
  CHECK(good("unix:///var/run/docker.sock") == url{"unix", "/var/run/docker.sock", 0, ""});
  has(bad("unix://relative.sock"), "absolute");
  has(bad("unix://"), "absolute");
  CHECK(good("unix:///" + std::string(106, 'x')).host.size() == 107);
  has(bad("unix:///" + std::string(107, 'x')), "at most 107 bytes");
}

TEST_CASE("what is not a usable URL says what is wrong with it", "[url]") {
  has(bad(""), "no scheme");
  has(bad("localhost:8080"), "no scheme");
  has(bad("htps://x"), "did you mean 'https'?");
  has(bad("ftp://x"), "the scheme 'ftp' is unknown");
  has(bad("http://"), "no host");
  has(bad("http:///v1"), "no host");
  has(bad("http://:80"), "no host");
  has(bad("http://h:"), "port is missing");
  has(bad("http://[::1]:"), "port is missing");
  has(bad("http://h:0"), "from 1 to 65535");
  has(bad("http://h:65536"), "from 1 to 65535");
  has(bad("http://h:80x"), "from 1 to 65535");
  has(bad("http://h:-1"), "from 1 to 65535");
  has(bad("http://::1/"), "brackets");
  has(bad("http://[::1"), "has no ']'");
  has(bad("http://[::1]x"), "only a port");
  has(bad("http://user:key@h"), "passwords");
  has(bad("http://h/v1?x=1"), "query");
  has(bad("http://h/#x"), "fragment");
  has(bad("http://h /x"), "blanks");
  has(bad("http://h/\r\nX: y"), "control characters");
}

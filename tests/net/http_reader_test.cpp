#include "runtime/net/http_reader.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

constexpr std::string_view chunked = "HTTP/1.1 200 OK\r\nX-Thing: A b\r\nTransfer-Encoding: "
                                     "chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";

http_reader response_reader(std::size_t limit = 1000) {
  return {http_reader::kind::response, limit};
}

error failing(std::string_view bytes, std::size_t limit = 1000) {
  auto r = response_reader(limit);
  auto ok = r.feed(bytes);
  REQUIRE(!ok);
  return ok.error();
}

}  // namespace

TEST_CASE("a message reads the same in one piece and byte by byte", "[reader]") {
  for (std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, chunked.size()}) {
    auto r = response_reader();
    for (std::size_t i = 0; i < chunked.size(); i += step) {
      CHECK(!r.done());
      REQUIRE(r.feed(chunked.substr(i, step)));
    }
    REQUIRE(r.done());
    CHECK(r.message().status == 200);
    CHECK(r.message().body == "hello world");
    CHECK(r.message().header("x-thing") == "A b");
    CHECK(r.keep_alive());
    CHECK(r.waiting() == 0);
  }
}

TEST_CASE("bytes after a message's end wait for the next", "[reader]") {
  http_reader r{http_reader::kind::request, 1000};
  REQUIRE(r.feed("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n"));
  REQUIRE(r.done());
  CHECK(r.message().method == "POST");
  CHECK(r.message().target == "/a");
  CHECK(r.message().body == "abc");
  CHECK(r.waiting() == 17);
  r.next();
  CHECK(r.started());
  REQUIRE(r.feed("\r\n"));
  REQUIRE(r.done());
  CHECK(r.message().target == "/b");
  CHECK(r.message().body.empty());
}

TEST_CASE("a body without a length ends with the connection", "[reader]") {
  auto r = response_reader();
  REQUIRE(r.feed("HTTP/1.1 200 OK\r\n\r\npart one"));
  REQUIRE(r.feed(", part two"));
  CHECK(!r.done());
  REQUIRE(r.feed_end());
  CHECK(r.message().body == "part one, part two");
  CHECK(!r.keep_alive());
}

TEST_CASE("an end that comes too early says how far the message came", "[reader]") {
  auto cut = [](std::string_view bytes) {
    auto r = response_reader();
    REQUIRE(r.feed(bytes));
    auto ok = r.feed_end();
    REQUIRE(!ok);
    CHECK(ok.error().code == errc::unavailable);
    return ok.error().detail;
  };
  CHECK(cut("") == "closed the connection without an answer");
  CHECK(cut("HTTP/1.1 200") == "closed the connection within the header");
  CHECK(cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        == "closed the connection within the body, after 3 bytes of it");
  CHECK(cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n")
        == "closed the connection within the body, after 4 bytes of it");
}

TEST_CASE("interim answers are read over", "[reader]") {
  auto r = response_reader();
  REQUIRE(r.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"));
  CHECK(!r.done());
  REQUIRE(r.feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  REQUIRE(r.done());
  CHECK(r.message().status == 200);
  CHECK(r.message().headers.size() == 1);
}

TEST_CASE("answers without a body are whole after their header", "[reader]") {
  auto r = response_reader();
  REQUIRE(r.feed("HTTP/1.1 204 No Content\r\n\r\n"));
  CHECK(r.done());
  r.next(true);
  REQUIRE(r.feed("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"));
  CHECK(r.done());
}

TEST_CASE("a peer that says it closes, or speaks HTTP/1.0, keeps nothing alive", "[reader]") {
  auto r = response_reader();
  REQUIRE(r.feed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  CHECK(!r.keep_alive());
  r.next();
  REQUIRE(r.feed("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  CHECK(!r.keep_alive());
}

TEST_CASE("what is too long is refused as soon as it is known", "[reader]") {
  CHECK(failing("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n").code == errc::over_budget);
  CHECK(
    failing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x'))
      .code
    == errc::over_budget);
  CHECK(failing("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x')).code == errc::over_budget);
  CHECK(failing("HTTP/1.1 200 OK\r\nA: " + std::string(70'000, 'x')).code == errc::over_budget);
}

TEST_CASE("neither the line before a chunk nor the trailers may go on for ever", "[reader]") {
  for (std::string part : {"1;", "0\r\na: "}) {
    auto r = response_reader(1'000);
    REQUIRE(r.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + part));
    std::size_t fed = 0;
    result<void> last;
    for (; last && fed < 1u << 20; fed += 4'096)
      last = r.feed(std::string(4'096, 'a'));
    REQUIRE(!last);
    CHECK(last.error().code == errc::over_budget);
    CHECK(fed <= 256u << 10);
  }
}

TEST_CASE("a length that nobody can hold allocates nothing", "[reader]") {
  auto r = response_reader(static_cast<std::size_t>(1) << 40);
  REQUIRE(r.feed("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nx"));
  CHECK(r.message().body.capacity() < 2u << 20);
}

TEST_CASE("what is not HTTP is corrupt at its first bytes", "[reader]") {
  CHECK(failing("SSH-2.0-OpenSSH").code == errc::corrupt);
  CHECK(failing("H2").code == errc::corrupt);
  CHECK(failing(std::string_view{"\x15\x03\x01\x00\x02", 5}).code == errc::corrupt);
  CHECK(failing("HTTP/1.1 abc OK\r\n\r\n").code == errc::corrupt);
  CHECK(failing("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n").code
        == errc::corrupt);
  CHECK(failing("HTTP/1.1 200 OK\r\nbad header\r\n\r\n").code == errc::corrupt);
  CHECK(failing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").code
        == errc::corrupt);
}

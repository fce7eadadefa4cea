#include "runtime/net/proxy_request.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::string_view_literals;

namespace {

proxy_request good(std::string_view head) {
  auto r = parse_proxy_request(head);
  INFO((r ? std::string{} : r.error().why));
  REQUIRE(r);
  return *r;
}

/// A request for http://a/ with these header lines.
std::string with(std::string_view lines) {
  return "GET http://a/ HTTP/1.1\r\n" + std::string{lines} + "\r\n";
}

}  // namespace

TEST_CASE("CONNECT asks for a tunnel to a host and port", "[egress]") {
  auto r = good("CONNECT Example.org:443 HTTP/1.1\r\nHost: other:1\r\n\r\n");
  CHECK(r.tunnel);
  CHECK(r.to == host_port{{"example.org", false}, 443});
  CHECK(r.head.empty());
  CHECK(good("CONNECT [::1]:80 HTTP/1.0\r\n\r\n").to == host_port{{"::1", true}, 80});
}

TEST_CASE("a request goes on in origin form, to the URL's own host", "[egress]") {
  auto r = good("GET http://Example.org/a%20b?c=d HTTP/1.1\r\n"
                "Host: evil.example\r\n"
                "Accept: */*\r\n"
                "Proxy-Authorization: Basic c2VjcmV0\r\n"
                "proxy-connection: keep-alive\r\n"
                "Connection: keep-alive, X-Hop\r\n"
                "Keep-Alive: timeout=5\r\n"
                "TE: trailers\r\n"
                "Trailer: X\r\n"
                "Upgrade: h2c\r\n"
                "x-hop: 1\r\n"
                "X-Kept:   two words \r\n"
                "\r\n");
  CHECK(!r.tunnel);
  CHECK(r.to == host_port{{"example.org", false}, 80});
  CHECK(r.head
        == "GET /a%20b?c=d HTTP/1.1\r\n"
           "Host: example.org\r\n"
           "Accept: */*\r\n"
           "X-Kept: two words\r\n"
           "Connection: close\r\n\r\n");
}

TEST_CASE("a target without a path gets one, another port stays in Host", "[egress]") {
  CHECK(good("GET http://a HTTP/1.1\r\n\r\n").head.starts_with("GET / HTTP/1.1\r\nHost: a\r\n"));
  CHECK(good("GET http://a:8080?q HTTP/1.0\r\n\r\n")
          .head.starts_with("GET /?q HTTP/1.0\r\nHost: a:8080\r\n"));
  CHECK(good("GET HTTP://[::1]:81/ HTTP/1.1\r\n\r\n")
          .head.starts_with("GET / HTTP/1.1\r\nHost: [::1]:81\r\n"));
}

TEST_CASE("a body is as long as Content-Length says, which nothing can take away", "[egress]") {
  auto r = good(with("Content-Length: 12\r\nConnection: content-length\r\n"));
  CHECK(r.body_bytes == 12);
  CHECK(r.head.find("Content-Length: 12\r\n") != std::string::npos);
  CHECK(good(with("")).body_bytes == 0);
}

TEST_CASE("a body whose length is not plain is refused: it could smuggle a request", "[egress]") {
  for (auto lines : {"Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: 1, 1\r\n",
                     "Content-Length: -1\r\n", "Content-Length: +1\r\n", "Content-Length: 0x5\r\n",
                     "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n"}) {
    INFO(lines);
    auto r = parse_proxy_request(with(lines));
    REQUIRE(!r);
    CHECK(r.error().status == 400);
  }
  for (auto lines :
       {"Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\ntransfer-encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n"}) {
    INFO(lines);
    auto r = parse_proxy_request(with(lines));
    REQUIRE(!r);
    CHECK(r.error().status == 411);
  }
}

TEST_CASE("anything but a request to a proxy gets a 400 in one printable line", "[egress]") {
  for (auto head : {
         "\r\n\r\n"sv,
         "hello\r\n\r\n"sv,
         "GET / HTTP/1.1\r\nHost: a\r\n\r\n"sv,
         "GET * HTTP/1.1\r\n\r\n"sv,
         "GET a:80 HTTP/1.1\r\n\r\n"sv,
         "GET https://a/ HTTP/1.1\r\n\r\n"sv,
         "GET ftp://a/ HTTP/1.1\r\n\r\n"sv,
         "GET file:///etc/passwd HTTP/1.1\r\n\r\n"sv,
         "GET http:/a/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a/ HTTP/2.0\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1 \r\n\r\n"sv,
         "GET  http://a/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a/ \r\n\r\n"sv,
         "GET http://a/\r\n\r\n"sv,
         " GET http://a/ HTTP/1.1\r\n\r\n"sv,
         "G@T http://a/ HTTP/1.1\r\n\r\n"sv,
         "GET http:// HTTP/1.1\r\n\r\n"sv,
         "GET http:///x HTTP/1.1\r\n\r\n"sv,
         "GET http://:80/ HTTP/1.1\r\n\r\n"sv,
         "GET http://user:pw@a/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a@b/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a\\@b/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a/#x HTTP/1.1\r\n\r\n"sv,
         "GET http://a#@b/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a:0/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a:65536/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a:80:80/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a:/ HTTP/1.1\r\n\r\n"sv,
         "GET http://::1/ HTTP/1.1\r\n\r\n"sv,
         "GET http://[fe80::1%25lo]/ HTTP/1.1\r\n\r\n"sv,
         "GET http://b\xc3\xbc/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a/\xc3\xbc HTTP/1.1\r\n\r\n"sv,
         "GET http://a/\0 HTTP/1.1\r\n\r\n"sv,
         "GET http://a\0.b/ HTTP/1.1\r\n\r\n"sv,
         "GET http://a%2eb/ HTTP/1.1\r\n\r\n"sv,
         "CONNECT a HTTP/1.1\r\n\r\n"sv,
         "CONNECT a: HTTP/1.1\r\n\r\n"sv,
         "CONNECT a:0 HTTP/1.1\r\n\r\n"sv,
         "CONNECT a:65536 HTTP/1.1\r\n\r\n"sv,
         "CONNECT a:4294967376 HTTP/1.1\r\n\r\n"sv,
         "CONNECT a:443/ HTTP/1.1\r\n\r\n"sv,
         "CONNECT http://a:443 HTTP/1.1\r\n\r\n"sv,
         "CONNECT u@a:443 HTTP/1.1\r\n\r\n"sv,
         "CONNECT :443 HTTP/1.1\r\n\r\n"sv,
         "connect a:443 HTTP/1.1\r\n\r\n"sv,
         "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\nHost: a\n\n\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nnocolon\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nX : 1\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\n: 1\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nX: 1\rY: 2\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nX: 1\nY: 2\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\nX: 1\0\r\n\r\n"sv,
         "GET http://a/ HTTP/1.1\r\n"sv,
         ""sv,
       }) {
    INFO(head);
    auto r = parse_proxy_request(head);
    REQUIRE(!r);
    CHECK(r.error().status == 400);
    CHECK(!r.error().why.empty());
    for (auto c : r.error().why)
      CHECK((c >= 0x20 && c < 0x7F));
  }
}

TEST_CASE("header lines are bounded in number", "[egress]") {
  std::string lines;
  for (int i = 0; i < 128; ++i)
    lines += "a: b\r\n";
  CHECK(parse_proxy_request(with(lines)));
  CHECK(!parse_proxy_request(with(lines + "a: b\r\n")));
}

TEST_CASE("a refusal says why in its status line and its body", "[egress]") {
  CHECK(refusal_response({403, "not listed"}, true)
        == "HTTP/1.1 403 not listed\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n"
           "Connection: close\r\n\r\nnot listed\n");
  CHECK(refusal_response({403, "not listed"}, false).ends_with("\r\n\r\n"));
}

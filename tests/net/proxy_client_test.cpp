// Requests through proxies that do as scripted, over real sockets.
#include "tests/net/fixed_names.hpp"
#include "tests/net/http_fixture.hpp"
#include "tests/net/test_authority.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

proxy_settings through(std::uint16_t port, const std::string& userinfo = "") {
  auto where = "http://" + userinfo + "127.0.0.1:" + std::to_string(port);
  proxy_settings out;
  out.for_http = parse_proxy(where, "HTTP_PROXY");
  out.for_https = parse_proxy(where, "HTTPS_PROXY");
  return out;
}

http_client_limits limits_for(std::uint16_t port, const std::string& userinfo = "") {
  return {
    .connect_timeout = patience, .ca_file = ca().ca_file(), .proxies = through(port, userinfo)};
}

/// Whatever a tunnel is asked for, it leads to 127.0.0.1.
int connect_local(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
  return fd;
}

void relay_bytes(int a, int b) {
  std::array<char, 65536> buffer;
  std::array<pollfd, 2> both{pollfd{a, POLLIN, 0}, pollfd{b, POLLIN, 0}};
  while (::poll(both.data(), both.size(), -1) > 0)
    for (std::size_t i = 0; i < 2; ++i) {
      if (both[i].revents == 0)
        continue;
      auto n = ::recv(both[i].fd, buffer.data(), buffer.size(), 0);
      if (n <= 0 || ::send(both[1 - i].fd, buffer.data(), std::size_t(n), MSG_NOSIGNAL) != n)
        return;
    }
}

/// Takes one CONNECT, and tunnels.
void tunnel(raw_server::peer& client, std::promise<std::string>* head = nullptr) {
  auto request = client.read_request();
  if (head != nullptr)
    head->set_value(request);
  auto colon = request.find(':');
  int server = connect_local(static_cast<std::uint16_t>(std::stoi(request.substr(colon + 1))));
  client.send("HTTP/1.1 200 Connection established\r\n\r\n");
  relay_bytes(client.fd(), server);
  ::close(server);
}

/// The failure of one HTTPS call through a proxy that answers its CONNECT so.
error refused_with(const std::string& answer) {
  reactor io;
  raw_server proxy{[&](auto& peer, int) {
    peer.read_request();
    peer.send(answer);
  }};
  http_client client{io, limits_for(proxy.port())};
  auto f = failed(fetch(client, post({"https", "api.test", 443, ""}), soon(patience)));
  CHECK(!f.sent);
  CHECK(client.stats().open == 0);
  CHECK(contains(f.what.detail, "https://api.test:443: the proxy http://127.0.0.1:"
                                  + std::to_string(proxy.port()) + " (HTTPS_PROXY) "));
  CHECK(f.what.detail.find('\n') == std::string::npos);
  return f.what;
}

}  // namespace

TEST_CASE("HTTPS goes through a tunnel, with the proxy's password in it and TLS end to end",
          "[proxy]") {
  reactor io;
  auto server = serve(io, echo, ca().issue("api", "DNS:api.test"));
  std::promise<std::string> asked;
  raw_server proxy{[&](auto& peer, int) { tunnel(peer, &asked); }};
  http_client client{io, limits_for(proxy.port(), "user:pass@")};
  url to{"https", "api.test", server->port(), ""};
  auto first = good(fetch(client, post(to, std::string(100'000, 'x')), soon(patience)));
  CHECK(first.body.size() == 100'000);
  CHECK(header(first, "x-got-proxy-authorization") == "(none)");
  good(fetch(client, post(to), soon(patience)));
  CHECK(proxy.accepted() == 1);
  CHECK(server->accepted() == 1);
  auto head = asked.get_future().get();
  CHECK(contains(head, "CONNECT api.test:" + std::to_string(server->port()) + " HTTP/1.1\r\n"));
  CHECK(contains(head, "proxy-authorization: Basic dXNlcjpwYXNz\r\n"));
}

TEST_CASE("a certificate is checked against the host, not the proxy", "[proxy]") {
  reactor io;
  auto server = serve(io, echo, ca().issue("local2", "DNS:localhost,IP:127.0.0.1"));
  raw_server proxy{[&](auto& peer, int) { tunnel(peer); }};
  http_client client{io, limits_for(proxy.port())};
  auto f = failed(fetch(client, post({"https", "api.test", server->port(), ""}), soon(patience)));
  CHECK(contains(f.what.detail, "not for 'api.test'"));
}

TEST_CASE("plain HTTP asks the proxy by absolute form, over shared connections", "[proxy]") {
  reactor io;
  auto proxy = serve(io, echo);  // a server that shows what it was asked
  http_client client{io, limits_for(proxy->port(), "user:pass@")};
  auto a = good(fetch(client, post({"http", "a.test", 8080, ""}, "{}", "/v1/x?y=1")));
  CHECK(header(a, "x-target") == "http://a.test:8080/v1/x?y=1");
  CHECK(header(a, "x-got-host") == "a.test:8080");
  CHECK(header(a, "x-got-proxy-authorization") == "Basic dXNlcjpwYXNz");
  CHECK(header(good(fetch(client, get({"http", "b.test", 80, ""}))), "x-target")
        == "http://b.test/");
  CHECK(proxy->accepted() == 1);
}

TEST_CASE("what NO_PROXY names goes straight", "[proxy]") {
  reactor io;
  auto server = serve(io, echo);
  std::uint16_t closed = raw_server{[](auto&, int) {}}.port();
  auto limits = limits_for(closed);
  limits.proxies.exempt = {{.name = "near.test"}};
  auto names = std::make_shared<fixed_names>();
  names->say("near.test", {}, {"127.0.0.1"});
  http_client client{io, limits, names};
  auto direct = good(fetch(client, get({"http", "near.test", server->port(), ""}, "/p")));
  CHECK(header(direct, "x-target") == "/p");
  good(fetch(client, get(local(server->port()))));
}

TEST_CASE("a proxy that is down is named with its variable", "[proxy]") {
  reactor io;
  std::uint16_t closed = raw_server{[](auto&, int) {}}.port();
  http_client client{io, limits_for(closed)};
  for (const auto* scheme : {"http", "https"}) {
    auto f = failed(fetch(client, post({scheme, "api.test", 443, ""}), soon(patience)));
    CHECK(f.what.code == errc::unavailable);
    CHECK(
      contains(f.what.detail, "the proxy http://127.0.0.1:" + std::to_string(closed) + " (HTTP"));
    CHECK(contains(f.what.detail, "_PROXY): connection refused"));
    CHECK(!f.sent);
  }
}

TEST_CASE("a proxy whose name is unknown is named with its variable", "[proxy]") {
  reactor io;
  auto names = std::make_shared<fixed_names>();
  error gone{errc::not_found, "there is no such host"};
  for (auto family : both_families)
    names->say("proxy.test", family, fail(gone));
  http_client_limits limits;
  limits.proxies.for_http = parse_proxy("proxy.test:3128", "http_proxy");
  http_client client{io, limits, names};
  auto f = failed(fetch(client, post({"http", "api.test", 80, ""}), soon(patience)));
  CHECK(f.what
        == error{errc::not_found, "http://api.test:80: the proxy http://proxy.test:3128 "
                                  "(http_proxy): there is no such host"});
}

TEST_CASE("a proxy that refuses a tunnel is told in its own words", "[proxy]") {
  auto e = refused_with("HTTP/1.1 407 Proxy Authentication Required\r\n"
                        "proxy-authenticate: Basic\r\ncontent-length: 3\r\n\r\nno!");
  CHECK(e.code == errc::denied);
  CHECK(contains(e.detail, "wants a user and a password (407); write http://user:password@"));
  e = refused_with("HTTP/1.1 403 Forbidden by policy\r\ncontent-length: 0\r\n\r\n");
  CHECK(e.code == errc::denied);
  CHECK(contains(e.detail, "does not open a connection to api.test:443 (403 Forbidden by policy)"));
  e = refused_with("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
  CHECK(e.code == errc::unavailable);
  CHECK(contains(e.detail, "could not reach api.test:443 (502 Bad Gateway)"));
}

TEST_CASE("a proxy that talks nonsense, too much or not at all is told apart", "[proxy]") {
  auto e = refused_with("\x05\x01\x02not a proxy for HTTP");
  CHECK(e.code == errc::invalid_argument);
  CHECK(contains(e.detail, "does not answer as an HTTP proxy does: it says '...not a proxy"));
  e = refused_with("HTTP/1.1 200 OK\r\n\r\nwelcome");
  CHECK(e.code == errc::invalid_argument);
  e = refused_with("HTTP/1.1 200 OK\r\nx: " + std::string(100'000, 'x'));
  CHECK(contains(e.detail, "does not answer as an HTTP proxy does"));
  e = refused_with("");
  CHECK(e.code == errc::unavailable);
  CHECK(contains(e.detail, "closed the connection without an answer"));
}

TEST_CASE("a 407 for plain HTTP is the proxy's, not the server's", "[proxy]") {
  reactor io;
  auto proxy = serve(io, [](server_request, const http_server::respond_fn& respond) {
    server_response r;
    r.status = 407;
    respond(std::move(r));
  });
  http_client client{io, limits_for(proxy->port())};
  auto f = failed(fetch(client, post({"http", "api.test", 80, ""}), soon(patience)));
  CHECK(f.what.code == errc::denied);
  CHECK(contains(f.what.detail, "(HTTP_PROXY) wants a user and a password (407)"));
}

TEST_CASE("a proxy that says nothing is given up with the time for a connection", "[proxy]") {
  reactor io;
  raw_server proxy{[](auto& peer, int) { peer.drain(); }};
  auto limits = limits_for(proxy.port());
  limits.connect_timeout = 40ms;
  http_client client{io, limits};
  auto f = failed(fetch(client, post({"https", "api.test", 443, ""})));
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "(HTTPS_PROXY)"));
  CHECK(client.stats().open == 0);
}

TEST_CASE("a proxy setting that cannot be used fails the call, and nothing is sent", "[proxy]") {
  reactor io;
  http_client_limits limits;
  limits.proxies.for_https = parse_proxy("socks5://p:1", "ALL_PROXY");
  http_client client{io, limits};
  auto f = failed(fetch(client, post({"https", "api.test", 443, ""})));
  CHECK(f.what.code == errc::invalid_argument);
  CHECK(contains(f.what.detail, "the proxy in ALL_PROXY cannot be used"));
  CHECK(!f.sent);
}

TEST_CASE("a call that is cancelled within the tunnel's making closes it", "[proxy]") {
  reactor io;
  std::promise<void> asked;
  std::promise<void> closed;
  raw_server proxy{[&](auto& peer, int) {
    peer.read_request();
    asked.set_value();
    peer.drain();
    closed.set_value();
  }};
  http_client client{io, limits_for(proxy.port())};
  pending call;
  auto ticket = client.send(post({"https", "api.test", 443, ""}), never, call.done());
  asked.get_future().wait();
  client.cancel(ticket);
  CHECK(failed(call.wait()).what.code == errc::cancelled);
  CHECK(closed.get_future().wait_for(patience) == std::future_status::ready);
}

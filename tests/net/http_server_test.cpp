#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Writes `bytes` to a fresh connection and reads until the server closes or `enough` bytes came.
std::string talk(std::uint16_t port, std::string_view bytes, std::size_t enough) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL)
          == static_cast<ssize_t>(bytes.size()));
  std::string got;
  char buffer[4096];
  while (got.size() < enough) {
    auto n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0)
      break;
    got.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return got;
}

server_response text(std::string body) {
  server_response r;
  r.body = std::move(body);
  return r;
}

constexpr std::size_t until_closed = 1u << 20;

}  // namespace

TEST_CASE("requests sent ahead are answered one by one, in order", "[server]") {
  reactor io;
  auto server = serve(io, [](server_request r, const auto& respond) { respond(text(r.target)); });
  std::string requests;
  for (auto* target : {"/a", "/b"})
    requests += "GET " + std::string{target} + " HTTP/1.1\r\n\r\n";
  requests += "GET /c HTTP/1.1\r\nconnection: close\r\n\r\n";
  auto got = talk(server->port(), requests, until_closed);
  auto a = got.find("\r\n\r\n/a");
  auto b = got.find("\r\n\r\n/b");
  auto c = got.find("\r\n\r\n/c");
  CHECK(a < b);
  CHECK(b < c);
  CHECK(c != std::string::npos);
  CHECK(contains(got.substr(b + 6), "connection: close"));
}

TEST_CASE("what is not a request gets a 400, what is too large a 413", "[server]") {
  reactor io;
  auto server =
    serve(io, [](server_request, const auto& respond) { respond({}); }, {.max_body_bytes = 10});
  CHECK(talk(server->port(), "what?\r\n\r\n", until_closed).starts_with("HTTP/1.1 400"));
  CHECK(talk(server->port(), "POST / HTTP/1.1\r\ncontent-length: 11\r\n\r\n", until_closed)
          .starts_with("HTTP/1.1 413"));
  CHECK(talk(server->port(),
             "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
             "3\r\nabc\r\n0\r\n\r\n",
             until_closed)
          .starts_with("HTTP/1.1 200"));
}

TEST_CASE("a client that asks first is invited to send its body", "[server]") {
  reactor io;
  auto server = serve(io, [](server_request, const auto& respond) { respond({}); });
  auto got = talk(server->port(),
                  "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n", 25);
  CHECK(got.starts_with("HTTP/1.1 100 Continue\r\n\r\n"));
}

TEST_CASE("a handler that throws, or forgets to answer, answers 500", "[server]") {
  reactor io;
  auto server = serve(io, [](const server_request& r, const auto&) {
    if (r.target == "/throw")
      throw std::runtime_error{"no such thing"};
  });
  http_client client{io, {}};
  auto thrown = fetch(client, get(local(server->port()), "/throw"));
  REQUIRE(thrown);
  CHECK(thrown->status == 500);
  CHECK(thrown->body == "no such thing\n");
  auto forgotten = fetch(client, get(local(server->port()), "/forget"));
  REQUIRE(forgotten);
  CHECK(forgotten->status == 500);
  CHECK(contains(forgotten->body, "gave no answer"));
}

TEST_CASE("an answer may come from any thread, and only the first counts", "[server]") {
  reactor io;
  std::vector<std::thread> threads;
  auto server = serve(io, [&](server_request r, auto respond) {
    threads.emplace_back([respond, target = r.target] {
      respond(text(target));
      respond(text("second"));
    });
  });
  http_client client{io, {}};
  for (int i = 0; i < 20; ++i) {
    auto target = "/" + std::to_string(i);
    auto a = fetch(client, get(local(server->port()), target));
    REQUIRE(a);
    CHECK(a->body == target);
  }
  for (auto& t : threads)
    t.join();
}

TEST_CASE("an answer that comes after the client, or the server, is gone does nothing",
          "[server]") {
  reactor io;
  std::promise<http_server::respond_fn> late;
  auto server = serve(io, [&](server_request, auto respond) { late.set_value(respond); });
  http_server::respond_fn respond;
  {
    http_client client{io, {}};
    pending call;
    client.send(get(local(server->port())), never, call.done());
    respond = late.get_future().get();
  }
  CHECK(becomes([&] { return server->open() == 0; }));
  respond(text("too late"));
  server.reset();
  respond(text("later still"));
}

TEST_CASE("a destroyed server has closed its port and its connections", "[server]") {
  reactor io;
  std::promise<http_server::respond_fn> taken;
  auto server = serve(io, [&](server_request, auto respond) { taken.set_value(respond); });
  auto port = server->port();
  http_client client{io, {}};
  pending call;
  client.send(get(local(port)), never, call.done());
  auto keep = taken.get_future().get();
  server.reset();
  CHECK(!call.wait());
  auto refused = fetch(client, get(local(port)));
  REQUIRE(!refused);
  CHECK(contains(refused.error().what.detail, "connection refused"));
}

TEST_CASE("a port that is taken, and an address that is none, are errors", "[server]") {
  reactor io;
  auto server = serve(io, [](server_request, const auto& respond) { respond({}); });
  auto second = http_server::listen(io, {.port = server->port()}, nullptr);
  REQUIRE(!second);
  CHECK(second.error().code == errc::unavailable);
  CHECK(contains(second.error().detail, std::to_string(server->port())));
  CHECK(!http_server::listen(io, {.address = "nowhere"}, nullptr));
  auto no_cert = http_server::listen(io, {.certificate_file = "/nonexistent.pem"}, nullptr);
  REQUIRE(!no_cert);
  CHECK(contains(no_cert.error().detail, "/nonexistent.pem"));
}

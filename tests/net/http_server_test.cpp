#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A connection that sends one thing, and reads when it is told to.
class silent_client {
public:
  explicit silent_client(std::uint16_t port, std::string_view bytes = {})
    : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    send(bytes);
  }
  ~silent_client() { ::close(fd_); }
  silent_client(const silent_client&) = delete;
  silent_client& operator=(const silent_client&) = delete;

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      must(n > 0);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  /// 0 at the end.
  std::size_t read_some(std::size_t most) {
    buffer_.resize(most);
    auto n = ::recv(fd_, buffer_.data(), most, 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  /// Reads until the server closes or `enough` bytes came.
  std::string read(std::size_t enough) {
    std::string got;
    for (std::size_t n = 1; n > 0 && got.size() < enough; got.append(buffer_, 0, n))
      n = read_some(64u << 10);
    return got;
  }

private:
  int fd_;
  std::string buffer_;
};

/// Writes `bytes` to a fresh connection and reads until the server closes or `enough` bytes came.
std::string talk(std::uint16_t port, std::string_view bytes, std::size_t enough) {
  return silent_client{port, bytes}.read(enough);
}

/// The same for what neither side's buffers hold: written and read at once, to the end.
std::string talk_both_ways(std::uint16_t port, std::string_view bytes) {
  silent_client client{port};
  std::thread writer{[&] { client.send(bytes); }};
  auto got = client.read(static_cast<std::size_t>(-1));
  writer.join();
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

TEST_CASE("large bodies that follow each other without a pause are told apart", "[server]") {
  reactor io;
  auto server = serve(io, [](server_request r, const auto& respond) {
    auto plain = r.body.find_first_not_of(r.target[1]) == std::string::npos;
    respond(text(r.target + (plain ? std::to_string(r.body.size()) : " was mixed up")));
  });
  constexpr std::size_t bytes = 300'000;
  std::string requests;
  for (auto c : {'a', 'b', 'c'})
    requests += "POST /" + std::string{c} + " HTTP/1.1\r\ncontent-length: " + std::to_string(bytes)
                + "\r\n\r\n" + std::string(bytes, c);
  for (int i = 0; i < 20'000; ++i)  // more than is read at once, behind a body's end
    requests += "GET /d HTTP/1.1\r\n\r\n";
  requests += "GET /e HTTP/1.1\r\nconnection: close\r\n\r\n";
  auto got = talk_both_ways(server->port(), requests);
  for (auto* answer : {"/a300000", "/b300000", "/c300000", "/e0"})
    CHECK(contains(got, "\r\n\r\n" + std::string{answer}));
  CHECK(!got.ends_with("mixed up"));
}

TEST_CASE("a client that takes nothing of its answer is cut off, others are served", "[server]") {
  reactor io;
  constexpr std::size_t bytes = 32u << 20;  // Linux lets a socket's buffers grow to 4 and 6 MB
  auto server = serve(io,
                      [](server_request r, const auto& respond) {
                        respond(text(r.target == "/large" ? std::string(bytes, 'x') : "small"));
                      },
                      {.stuck_after = 100ms});
  http_client client{io, {}};
  silent_client silent{server->port(), "GET /large HTTP/1.1\r\n\r\n"};
  CHECK(good(fetch(client, get(local(server->port())))).body == "small");
  CHECK(server->accepted() == 2);
  CHECK(becomes([&] { return server->open() == 1; }));
  CHECK(good(fetch(client, get(local(server->port())))).body == "small");
  CHECK(server->accepted() == 2);
}

TEST_CASE("a client that reads slowly, or waits for its answer, is not cut off", "[server]") {
  reactor io;
  constexpr std::size_t bytes = 24u << 20;
  auto server = serve(io,
                      [&io](server_request r, http_server::respond_fn respond) {
                        if (r.target == "/late")
                          io.in(1500ms, [respond = std::move(respond)] { respond(text("late")); });
                        else
                          respond(text(std::string(bytes, 'x')));
                      },
                      {.stuck_after = 500ms});
  http_client client{io, {}};
  pending late;
  client.send(get(local(server->port()), "/late"), never, late.done());
  silent_client slow{server->port(), "GET / HTTP/1.1\r\nconnection: close\r\n\r\n"};
  std::size_t got = 0;
  for (std::size_t n = 1; n > 0; got += n) {
    n = slow.read_some(512u << 10);
    std::this_thread::sleep_for(30ms);
  }
  CHECK(got > bytes);
  CHECK(good(late.wait()).body == "late");
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

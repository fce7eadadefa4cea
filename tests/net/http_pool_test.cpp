#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// From here on the kernel throws away what the peer sends, and acknowledges none of it.
void drop_all_that_comes(int fd) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  sock_fprog program{1, &nothing};
  must(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
}

/// Segments thrown away so far.
std::uint32_t dropped_by(int fd) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> counts{};
  socklen_t size = sizeof counts;
  must(::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counts.data(), &size) == 0);
  return counts[SK_MEMINFO_DROPS];
}

}  // namespace

TEST_CASE("calls one after the other share one connection", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  for (int i = 0; i < 50; ++i)
    CHECK(good(fetch(client, post(local(server->port()), std::to_string(i)))).body
          == std::to_string(i));
  CHECK(server->accepted() == 1);
  auto stats = client.stats();
  CHECK(stats.requests == 50);
  CHECK(stats.connections_opened == 1);
  CHECK(stats.open == 1);
  CHECK(stats.idle == 1);
  CHECK(stats.stale_retries == 0);
}

TEST_CASE("200 calls at once stay within 8 connections, and all are answered", "[http]") {
  reactor io;
  reactor server_io;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  auto server = serve(server_io, [&](server_request request, http_server::respond_fn respond) {
    most = std::max<int>(most, ++inside);
    server_io.in(1ms, [&inside, respond, body = std::move(request.body)] {
      --inside;
      server_response r;
      r.body = body;
      respond(std::move(r));
    });
  });
  http_client client{io, {.max_connections = 8}};
  std::vector<pending> calls(200);
  for (std::size_t i = 0; i < calls.size(); ++i)
    client.send(post(local(server->port()), std::to_string(i)), soon(patience), calls[i].done());
  for (std::size_t i = 0; i < calls.size(); ++i)
    CHECK(good(calls[i].wait()).body == std::to_string(i));
  CHECK(server->accepted() == 8);
  CHECK(most == 8);
  CHECK(client.stats().connections_opened == 8);
}

TEST_CASE("waiting calls go out in the order they came", "[http]") {
  reactor io;
  std::string order;
  auto server = serve(io, [&](server_request request, const http_server::respond_fn& respond) {
    order += request.body;
    respond({});
  });
  http_client client{io, {.max_connections = 1}};
  std::vector<pending> calls(20);
  for (std::size_t i = 0; i < calls.size(); ++i)
    client.send(post(local(server->port()), std::string(1, static_cast<char>('a' + i))), never,
                calls[i].done());
  for (auto& call : calls)
    good(call.wait());
  CHECK(order == "abcdefghijklmnopqrst");
}

TEST_CASE("a deadline runs while the call waits for a connection", "[http]") {
  reactor io;
  auto server = serve(io, [kept = std::vector<http_server::respond_fn>{}](
                            server_request, http_server::respond_fn respond) mutable {
    kept.push_back(std::move(respond));
  });
  http_client client{io, {.max_connections = 1}};
  pending holder;
  pending waiter;
  client.send(post(local(server->port())), never, holder.done());
  client.send(post(local(server->port())), soon(30ms), waiter.done());
  auto f = failed(waiter.wait());
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "while waiting for a free connection"));
  CHECK(contains(f.what.detail, "http://127.0.0.1:" + std::to_string(server->port())));
  CHECK(!f.sent);
  CHECK(!holder.ready());
}

TEST_CASE("a waiting call can be cancelled, a finished one cannot", "[http]") {
  reactor io;
  std::vector<http_server::respond_fn> kept;
  std::atomic<int> held{0};
  auto server = serve(io, [&](server_request, http_server::respond_fn respond) {
    kept.push_back(std::move(respond));
    ++held;
  });
  http_client client{io, {.max_connections = 1}};
  pending first;
  pending second;
  pending third;
  auto first_ticket = client.send(post(local(server->port())), never, first.done());
  CHECK(becomes([&] { return held == 1; }));
  auto second_ticket = client.send(post(local(server->port())), never, second.done());
  client.cancel(second_ticket);
  CHECK(failed(second.wait()).what.code == errc::cancelled);
  client.send(post(local(server->port())), never, third.done());
  client.cancel(first_ticket);
  CHECK(failed(first.wait()).what.code == errc::cancelled);
  CHECK(becomes([&] { return held == 2; }));
  client.cancel(first_ticket);
  client.cancel(second_ticket);
  io.post([&] { kept.back()({}); });
  CHECK(good(third.wait()).status == 200);
  CHECK(first.calls() == 1);
  CHECK(second.calls() == 1);
}

TEST_CASE("an idle connection that the server closed costs no failure", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.read_request();
    peer.send(ok);  // and closes, without having said so
  }};
  http_client client{io, {}};
  for (int i = 0; i < 10; ++i)
    CHECK(good(fetch(client, post(local(server.port())))).body == "ok");
  CHECK(server.accepted() == 10);
}

TEST_CASE("a request that no byte of has arrived is sent once more, whatever its method",
          "[http]") {
  reactor io;
  std::promise<void> deaf;
  std::atomic<int> requests{0};
  raw_server server{[&](auto& peer, int number) {
    peer.read_request();
    ++requests;
    peer.send(ok);
    if (number == 1) {
      drop_all_that_comes(peer.fd());
      deaf.set_value();
      must(becomes([&] { return dropped_by(peer.fd()) > 0; }));
      return;  // closes, as a server does that had not seen the request on its way
    }
    peer.drain();
  }};
  http_client client{io, {}};
  good(fetch(client, post(local(server.port()))));
  deaf.get_future().wait();
  CHECK(good(fetch(client, post(local(server.port())), soon(patience))).body == "ok");
  CHECK(requests == 2);
  CHECK(client.stats().stale_retries == 1);
  CHECK(client.stats().connections_opened == 2);
}

namespace {

/// A server whose first connection takes a second request, and ends without a byte of an answer.
raw_server::script_fn swallows_the_second(std::atomic<int>& requests) {
  return [&requests](auto& peer, int number) {
    while (!peer.read_request().empty()) {
      if (++requests == 2 && number == 1)
        return;
      peer.send(ok);
    }
  };
}

}  // namespace

TEST_CASE("a POST that the server may have seen is not sent twice", "[http]") {
  reactor io;
  std::atomic<int> requests{0};
  raw_server server{swallows_the_second(requests)};
  http_client client{io, {}};
  good(fetch(client, post(local(server.port()))));
  auto f = failed(fetch(client, post(local(server.port()))));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "without an answer"));
  CHECK(f.sent);
  CHECK(requests == 2);
  CHECK(server.accepted() == 1);
  CHECK(client.stats().stale_retries == 0);
}

TEST_CASE("what is idempotent is sent once more, seen or not", "[http]") {
  // RFC 9110, section 9.2.2, names the methods.
  for (const auto* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    reactor io;
    std::atomic<int> requests{0};
    raw_server server{swallows_the_second(requests)};
    http_client client{io, {}};
    good(fetch(client, post(local(server.port()))));
    auto r = get(local(server.port()));
    r.method = method;
    CHECK(good(fetch(client, r)).status == 200);
    CHECK(requests == 3);
    CHECK(client.stats().stale_retries == 1);
  }
}

TEST_CASE("over a unix socket a POST that was taken is not sent twice", "[http]") {
  reactor io;
  temp_dir dir;
  std::atomic<int> requests{0};
  raw_server server{swallows_the_second(requests), dir.file("s")};
  http_client client{io, {}};
  url to{"unix", dir.file("s"), 0, ""};
  good(fetch(client, post(to)));
  CHECK(failed(fetch(client, post(to))).sent);
  CHECK(requests == 2);
}

TEST_CASE("the second try is the last", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int number) {
    peer.read_request();
    if (number == 1) {
      peer.send(ok);
      peer.read_request();
    }
  }};
  http_client client{io, {}};
  good(fetch(client, get(local(server.port()))));
  auto f = failed(fetch(client, get(local(server.port()))));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "without an answer"));
  CHECK(f.sent);
  CHECK(server.accepted() == 2);
}

TEST_CASE("a close after the answer's first bytes is a failure, not a retry", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.read_request();
    peer.send(ok);
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n");
  }};
  http_client client{io, {}};
  good(fetch(client, post(local(server.port()))));
  auto f = failed(fetch(client, post(local(server.port()))));
  CHECK(contains(f.what.detail, "within the header"));
  CHECK(server.accepted() == 1);
  CHECK(client.stats().stale_retries == 0);
}

TEST_CASE("bytes that nobody asked for end a connection", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.read_request();
    peer.send(std::string{ok} + "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfalse");
    peer.drain();
  }};
  http_client client{io, {}};
  for (int i = 0; i < 3; ++i)
    CHECK(good(fetch(client, post(local(server.port())))).body == "ok");
  CHECK(server.accepted() == 3);
}

TEST_CASE("a host name is looked up for all its calls at once", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  std::vector<pending> calls(20);
  for (auto& call : calls)
    client.send(post({"http", "localhost", server->port(), ""}), never, call.done());
  for (auto& call : calls)
    CHECK(good(call.wait()).status == 200);
}

TEST_CASE("idle connections are closed after their time", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {.idle_timeout = 20ms}};
  good(fetch(client, post(local(server->port()))));
  CHECK(becomes([&] { return client.stats().idle == 0; }));
  CHECK(becomes([&] { return server->open() == 0; }));
  CHECK(client.stats().open == 0);
  good(fetch(client, post(local(server->port()))));
  CHECK(server->accepted() == 2);
  CHECK(client.stats().stale_retries == 0);
}

TEST_CASE("no more idle connections are kept for a peer than allowed", "[http]") {
  reactor io;
  std::vector<http_server::respond_fn> kept;
  auto server = serve(io, [&](server_request, http_server::respond_fn respond) {
    kept.push_back(std::move(respond));
    if (kept.size() == 10)
      for (auto& each : kept)
        each({});
  });
  http_client client{io, {.max_idle_per_peer = 2}};
  std::vector<pending> calls(10);
  for (auto& call : calls)
    client.send(post(local(server->port())), never, call.done());
  for (auto& call : calls)
    good(call.wait());
  CHECK(client.stats().connections_opened == 10);
  CHECK(becomes([&] { return client.stats().open == 2; }));
  CHECK(client.stats().idle == 2);
}

TEST_CASE("another peer's idle connection makes room", "[http]") {
  reactor io;
  auto a = serve(io, echo);
  auto b = serve(io, echo);
  http_client client{io, {.max_connections = 1}};
  good(fetch(client, post(local(a->port()))));
  good(fetch(client, post(local(b->port()))));
  CHECK(becomes([&] { return a->open() == 0; }));
  CHECK(client.stats().open == 1);
}

TEST_CASE("a destroyed client has cancelled its calls, and calls nobody after", "[http]") {
  reactor io;
  std::atomic<int> held{0};
  auto server = serve(io, [&held, kept = std::vector<http_server::respond_fn>{}](
                            server_request, http_server::respond_fn respond) mutable {
    kept.push_back(std::move(respond));
    ++held;
  });
  std::vector<pending> calls(20);
  {
    http_client client{io, {.max_connections = 4}};
    for (auto& call : calls)
      client.send(post(local(server->port())), soon(patience), call.done());
    CHECK(becomes([&] { return held == 4; }));
  }
  for (auto& call : calls) {
    REQUIRE(call.ready());
    CHECK(failed(call.wait()).what.code == errc::cancelled);
  }
  CHECK(becomes([&] { return server->open() == 0; }));
  for (auto& call : calls)
    CHECK(call.calls() == 1);
}

TEST_CASE("a client may be destroyed from within an answer", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  auto client = std::make_unique<http_client>(io, http_client_limits{.max_connections = 1});
  std::promise<void> gone;
  pending second;
  io.post([&] {  // on the reactor: no answer comes before both are sent
    client->send(post(local(server->port())), never, [&](auto&&) {
      client.reset();
      gone.set_value();
    });
    client->send(post(local(server->port())), soon(patience), second.done());
  });
  REQUIRE(gone.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(failed(second.wait()).what.code == errc::cancelled);
}

TEST_CASE("calls that arrived together with the last are answered before the client is gone",
          "[http]") {
  reactor io;
  auto client = std::make_unique<http_client>(io, http_client_limits{});
  auto broken = post(local(1));
  broken.method = "";
  std::promise<int> ended;
  int answered = 0;
  io.post([&] {
    client->send(broken, never, [&](auto&&) {
      client.reset();
      ended.set_value(answered);
    });
    for (int i = 0; i < 5; ++i)
      client->send(broken, never, [&](auto&&) { ++answered; });
  });
  CHECK(ended.get_future().get() == 5);
}

TEST_CASE("a client outlives the stop of its reactor", "[http]") {
  reactor io;
  auto server = serve(io, [kept = std::vector<http_server::respond_fn>{}](
                            server_request, http_server::respond_fn respond) mutable {
    kept.push_back(std::move(respond));
  });
  pending call;
  {
    http_client client{io, {}};
    client.send(post(local(server->port())), never, call.done());
    CHECK(becomes([&] { return server->open() == 1; }));
    io.stop();
  }
  CHECK(failed(call.wait()).what.code == errc::cancelled);
}

TEST_CASE("a call may be sent from within an answer", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {.max_connections = 1}};
  std::promise<int> ended;
  std::function<void(int)> again = [&](int left) {
    client.send(post(local(server->port())), never, [&, left](answer a) {
      if (!a || left == 0)
        ended.set_value(left);
      else
        again(left - 1);
    });
  };
  again(100);
  CHECK(ended.get_future().get() == 0);
  CHECK(server->accepted() == 1);
}

#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

std::unique_ptr<http_server> serve(reactor& io, http_server::handler_fn handler,
                                   http_server::options opts = {}) {
  auto server = http_server::listen(io, std::move(opts), std::move(handler));
  REQUIRE(server);
  return std::move(*server);
}

void echo(server_request request, const http_server::respond_fn& respond) {
  server_response r;
  r.headers = {{"x-method", request.method}, {"x-target", request.target}};
  for (auto& [name, value] : request.headers)
    r.headers.emplace_back("x-got-" + name, value);
  r.body = std::move(request.body);
  respond(std::move(r));
}

std::string header(const http_response& r, std::string_view name) {
  auto it =
    std::find_if(r.headers.begin(), r.headers.end(), [&](auto& h) { return h.first == name; });
  return it == r.headers.end() ? "(none)" : it->second;
}

http_failure failed(const answer& a) {
  REQUIRE(!a);
  return a.error();
}

http_response good(const answer& a) {
  INFO((a ? std::string{} : to_string(a.error().what)));
  REQUIRE(a);
  return *a;
}

} // namespace

TEST_CASE("a request arrives whole and its answer comes back whole", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  http_request r;
  r.to = local(server->port());
  r.target = "/v1/chat?x=1";
  r.headers = {{"X-Key", "a b"}, {"content-length", "999"}};
  for (auto* piece : {"one, ", "", "two, ", "three"}) {
    r.owners.push_back(std::make_shared<const std::string>(piece));
    r.body.emplace_back(*r.owners.back());
  }
  auto response = good(fetch(client, r));
  CHECK(response.status == 200);
  CHECK(response.body == "one, two, three");
  CHECK(header(response, "x-method") == "POST");
  CHECK(header(response, "x-target") == "/v1/chat?x=1");
  CHECK(header(response, "x-got-x-key") == "a b");
  CHECK(header(response, "x-got-content-length") == "15");
  CHECK(header(response, "x-got-host") == "127.0.0.1:" + std::to_string(server->port()));
  CHECK(header(response, "x-got-user-agent") == "troupe");
}

TEST_CASE("bodies far larger than any buffer pass both ways", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  std::string body(3'000'001, 'x');
  for (std::size_t i = 0; i < body.size(); i += 997)
    body[i] = static_cast<char>('a' + i % 26);
  CHECK(good(fetch(client, post(local(server->port()), body))).body == body);
}

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

TEST_CASE("a GET has no body, a HEAD's answer has none, a 204 has none", "[http]") {
  reactor io;
  auto server = serve(io, [](server_request request, const http_server::respond_fn& respond) {
    if (request.target == "/none") {
      server_response r;
      r.status = 204;
      respond(std::move(r));
    } else {
      echo(std::move(request), respond);
    }
  });
  http_client client{io, {}};
  CHECK(header(good(fetch(client, get(local(server->port())))), "x-got-content-length")
        == "(none)");
  auto head = get(local(server->port()));
  head.method = "HEAD";
  CHECK(header(good(fetch(client, head)), "x-method") == "HEAD");
  CHECK(good(fetch(client, get(local(server->port()), "/none"))).status == 204);
  CHECK(good(fetch(client, get(local(server->port())))).status == 200);
  CHECK(server->accepted() == 1);
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

TEST_CASE("a server that is too slow loses its connection at the deadline", "[http]") {
  reactor io;
  auto server = serve(io, [kept = std::vector<http_server::respond_fn>{}](
                            server_request, http_server::respond_fn respond) mutable {
    kept.push_back(std::move(respond));
  });
  http_client client{io, {}};
  auto before = steady_clock::now();
  auto f = failed(fetch(client, post(local(server->port())), soon(40ms)));
  CHECK(steady_clock::now() - before >= 40ms);
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "while waiting for the answer's first byte"));
  CHECK(f.sent);
  CHECK(becomes([&] { return server->open() == 0; }));
  CHECK(client.stats().open == 0);
}

TEST_CASE("a deadline that has passed already sends nothing", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) { peer.drain(); }};
  http_client client{io, {.max_connections = 1}};
  auto f = failed(fetch(client, post(local(server.port())), soon(-1s)));
  CHECK(f.what.code == errc::timeout);
}

TEST_CASE("a body that trickles is cut off at the deadline", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc");
    peer.drain();
  }};
  http_client client{io, {}};
  auto f = failed(fetch(client, post(local(server.port())), soon(40ms)));
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "while receiving the answer"));
}

TEST_CASE("cancelling within the body closes the socket and answers once", "[http]") {
  reactor io;
  std::promise<void> half_sent;
  std::promise<void> saw_close;
  raw_server server{[&](auto& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc");
    half_sent.set_value();
    peer.drain();
    saw_close.set_value();
  }};
  http_client client{io, {}};
  pending call;
  auto ticket = client.send(post(local(server.port())), never, call.done());
  half_sent.get_future().wait();
  client.cancel(ticket);
  client.cancel(ticket);
  auto f = failed(call.wait());
  CHECK(f.what.code == errc::cancelled);
  CHECK(f.sent);
  CHECK(saw_close.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(call.calls() == 1);
  CHECK(client.stats().open == 0);
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
    peer.send(ok); // and closes, without having said so
  }};
  http_client client{io, {}};
  for (int i = 0; i < 10; ++i)
    CHECK(good(fetch(client, post(local(server.port())))).body == "ok");
  CHECK(server.accepted() == 10);
}

TEST_CASE("a request that meets the close of its reused connection is sent once more", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int number) {
    peer.read_request();
    peer.send(ok);
    if (number == 1) {
      peer.read_request(); // takes the second request, and closes without a byte
      return;
    }
    peer.read_request();
    peer.send(ok);
    peer.drain();
  }};
  http_client client{io, {}};
  good(fetch(client, post(local(server.port()))));
  CHECK(good(fetch(client, post(local(server.port())))).body == "ok");
  CHECK(client.stats().stale_retries == 1);
  CHECK(client.stats().connections_opened == 2);
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
  good(fetch(client, post(local(server.port()))));
  auto f = failed(fetch(client, post(local(server.port()))));
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

TEST_CASE("dropped and cut answers say so", "[http]") {
  reactor io;
  auto server = serve(io, [](server_request request, const http_server::respond_fn& respond) {
    server_response r;
    r.body = "0123456789";
    r.drop = request.target == "/drop";
    r.cut_after = request.target == "/cut" ? 4 : r.cut_after;
    respond(std::move(r));
  });
  http_client client{io, {}};
  auto f = failed(fetch(client, post(local(server->port()), "x", "/drop")));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "without an answer"));
  f = failed(fetch(client, post(local(server->port()), "x", "/cut")));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "after 4 bytes"));
  CHECK(good(fetch(client, post(local(server->port())))).body == "0123456789");
}

TEST_CASE("an answer longer than allowed ends the call and its connection", "[http]") {
  reactor io;
  auto server = serve(io, [](server_request, const http_server::respond_fn& respond) {
    server_response r;
    r.body = std::string(5000, 'x');
    respond(std::move(r));
  });
  http_client client{io, {.max_response_bytes = 4999}};
  auto f = failed(fetch(client, post(local(server->port()))));
  CHECK(f.what.code == errc::over_budget);
  CHECK(contains(f.what.detail, "4999 bytes"));
  CHECK(client.stats().open == 0);
  http_client wider{io, {.max_response_bytes = 5000}};
  CHECK(good(fetch(wider, post(local(server->port())))).body.size() == 5000);
}

TEST_CASE("a peer that does not speak HTTP is shown by its first bytes", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.send("SSH-2.0-OpenSSH_9.2\r\n");
    peer.drain();
  }};
  http_client client{io, {}};
  auto f = failed(fetch(client, post(local(server.port())), soon(patience)));
  CHECK(f.what.code == errc::corrupt);
  CHECK(contains(f.what.detail, "SSH-2.0"));
}

TEST_CASE("chunks, an interim answer, and a body that ends with the connection", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              "3\r\nabc\r\n");
    peer.send("2\r\nde\r\n0\r\n\r\n");
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  }};
  http_client client{io, {}};
  CHECK(good(fetch(client, post(local(server.port())))).body == "abcde");
  CHECK(good(fetch(client, post(local(server.port())))).body == "until the end");
  CHECK(server.accepted() == 1);
  CHECK(client.stats().open == 0);
}

TEST_CASE("a server may answer before it has read the request", "[http]") {
  reactor io;
  raw_server server{[](auto& peer, int) {
    peer.send("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig");
    peer.half_close();
    peer.drain();
  }};
  http_client client{io, {}};
  auto response = good(fetch(client, post(local(server.port()), std::string(8u << 20, 'x'))));
  CHECK(response.status == 413);
  CHECK(response.body == "big");
  CHECK(client.stats().open == 0);
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

TEST_CASE("nobody listening is said in so many words, and was not sent", "[http]") {
  reactor io;
  std::uint16_t port = 0;
  {
    port = raw_server{[](auto&, int) {}}.port();
  }
  http_client client{io, {}};
  auto f = failed(fetch(client, post(local(port))));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "connection refused"));
  CHECK(!f.sent);
  CHECK(client.stats().open == 0);
}

TEST_CASE("a name that cannot be resolved is told apart from a dead server", "[http]") {
  reactor io;
  http_client client{io, {}};
  std::vector<pending> calls(20);
  for (auto& call : calls) // a label may have 63 bytes: no resolver is asked for this one
    client.send(post({"http", std::string(70, 'a'), 80, ""}), never, call.done());
  for (auto& call : calls) {
    auto f = failed(call.wait());
    CHECK(f.what.code == errc::unavailable);
    CHECK(contains(f.what.detail, "cannot resolve the host name"));
    CHECK(!f.sent);
  }
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

TEST_CASE("a connection that is not taken up ends with the time for one", "[http]") {
  // A listener that never accepts, its queue filled: further SYNs get no answer.
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener, generic, size) == 0);
  REQUIRE(::listen(listener, 0) == 0);
  REQUIRE(::getsockname(listener, generic, &size) == 0);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(fillers.back(), generic, size);
  }
  reactor io;
  http_client client{io, {.connect_timeout = 40ms}};
  auto f = failed(fetch(client, post(local(ntohs(address.sin_port)))));
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "while connecting"));
  CHECK(!f.sent);
  for (auto fd : fillers)
    ::close(fd);
  ::close(listener);
}

TEST_CASE("a header that could smuggle a second request is refused", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  auto refused = [&](auto change) {
    auto r = post(local(server->port()));
    change(r);
    auto f = failed(fetch(client, r));
    CHECK(!f.sent);
    return f.what.code == errc::invalid_argument;
  };
  CHECK(refused([](auto& r) { r.headers = {{"x", "a\r\nhost: evil"}}; }));
  CHECK(refused([](auto& r) { r.headers = {{"x y", "a"}}; }));
  CHECK(refused([](auto& r) { r.headers = {{"", "a"}}; }));
  CHECK(refused([](auto& r) { r.target = "/ HTTP/1.1\r\n\r\n"; }));
  CHECK(refused([](auto& r) { r.method = "GET /"; }));
  CHECK(refused([](auto& r) { r.to = {"unix", "/" + std::string(200, 'x'), 0, ""}; }));
  CHECK(server->accepted() == 0);
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
  client->send(post(local(server->port())), never, [&](auto&&) {
    client.reset();
    gone.set_value();
  });
  client->send(post(local(server->port())), soon(patience), second.done());
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

TEST_CASE("HTTP over a unix socket, and a clear word when there is none", "[http]") {
  reactor io;
  temp_dir dir;
  raw_server server{[](auto& peer, int) {
                      while (!peer.read_request().empty())
                        peer.send(ok);
                    },
                    dir.file("api.sock")};
  http_client client{io, {}};
  auto to = parse_url("unix://" + dir.file("api.sock"));
  REQUIRE(to);
  CHECK(good(fetch(client, get(*to, "/info"))).body == "ok");
  CHECK(good(fetch(client, post(*to))).body == "ok");
  CHECK(server.accepted() == 1);
  auto f = failed(fetch(client, get({"unix", dir.file("other.sock"), 0, ""})));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "there is no such socket"));
}

#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("a request arrives whole and its answer comes back whole", "[http]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  http_request r;
  r.to = local(server->port());
  r.target = "/v1/chat?x=1";
  r.headers = {{"X-Key", "a b"}, {"content-length", "999"}};
  for (auto* piece : {"one, ", "", "two, ", "three"}) {
    auto owned = std::make_shared<const std::string>(piece);
    r.body.emplace_back(*owned);
    r.owners.push_back(std::move(owned));
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

TEST_CASE("a server that is too slow loses its connection at the deadline", "[http]") {
  reactor io;
  auto server = serve(io, [kept = std::vector<http_server::respond_fn>{}](
                            server_request, http_server::respond_fn respond) mutable {
    kept.push_back(std::move(respond));
  });
  http_client client{io, {}};
  constexpr std::string_view phase = "while waiting for the answer's first byte";
  auto f = time_out(client, local(server->port()), phase);
  CHECK(contains(f.what.detail, phase));
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
  constexpr std::string_view phase = "while receiving the answer";
  auto f = time_out(client, local(server.port()), phase);
  CHECK(contains(f.what.detail, phase));
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
  for (auto& call : calls)  // a label may have 63 bytes: no resolver is asked for this one
    client.send(post({"http", std::string(70, 'a'), 80, ""}), never, call.done());
  for (auto& call : calls) {
    auto f = failed(call.wait());
    CHECK(f.what.code == errc::not_found);
    CHECK(contains(f.what.detail, "does not exist; check its spelling"));
    CHECK(!f.sent);
  }
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
    static_cast<void>(::connect(fillers.back(), generic, size));
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

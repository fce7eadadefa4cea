#include "runtime/net/egress_dialer.hpp"
#include "runtime/net/egress_proxy.hpp"
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

struct listening {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
};

listening listen_on_loopback() {
  listening l;
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(l.fd, generic, size) == 0);
  REQUIRE(::listen(l.fd, 16) == 0);
  REQUIRE(::getsockname(l.fd, generic, &size) == 0);
  l.port = ntohs(address.sin_port);
  return l;
}

/// Looks names up in a table and connects to a stand-in on loopback, and remembers what it was
/// asked for: no test reaches beyond 127.0.0.1, whatever the proxy decides.
class spy_dialer {
public:
  using connected_fn = egress_dialer::connected_fn;

  std::map<std::string, std::vector<std::string>> names;  ///< addresses by name
  std::uint16_t stand_in = 0;                             ///< a port on 127.0.0.1
  bool silent = false;                                    ///< lookups and connections never end
  std::size_t fail_first = 0;                             ///< so many connections are refused

  std::shared_ptr<const egress_dialer> dialer() {
    auto d = std::make_shared<egress_dialer>();
    d->resolve = [this](const std::string& name, const egress_dialer::resolved_fn& then) {
      return resolve(name, then);
    };
    d->connect = [this](auto& socket, const auto& to, const connected_fn& then) {
      connect(socket, to, then);
    };
    return d;
  }

  std::vector<std::string> looked_up() { return copy(looked_up_); }
  std::vector<std::string> dialed() { return copy(dialed_); }
  [[nodiscard]] bool waiting() const { return !handle_.expired(); }

private:
  std::vector<std::string> copy(const std::vector<std::string>& from) {
    std::lock_guard lock{mutex_};
    return from;
  }

  void remember(std::vector<std::string>& in, std::string what) {
    std::lock_guard lock{mutex_};
    in.push_back(std::move(what));
  }

  std::shared_ptr<void> resolve(const std::string& name, const egress_dialer::resolved_fn& then) {
    remember(looked_up_, name);
    auto handle = std::make_shared<int>();
    handle_ = handle;
    if (silent)
      return handle;
    auto known = names.find(name);
    if (known == names.end()) {
      then(fail(errc::unavailable, "Host not found"));
      return handle;
    }
    egress_dialer::addresses found;
    for (const auto& a : known->second)
      found.push_back(asio::ip::make_address(a));
    then(found);
    return handle;
  }

  void connect(asio::ip::tcp::socket& socket, const asio::ip::tcp::endpoint& to,
               const connected_fn& then) {
    remember(dialed_, to.address().to_string() + " " + std::to_string(to.port()));
    if (silent)
      return;
    if (fail_first > 0) {
      --fail_first;
      asio::post(socket.get_executor(), [then] { then(asio::error::connection_refused); });
      return;
    }
    socket.async_connect({asio::ip::address_v4::loopback(), stand_in}, then);
  }

  std::mutex mutex_;
  std::vector<std::string> looked_up_;
  std::vector<std::string> dialed_;
  std::weak_ptr<int> handle_;
};

/// A proxy on a port of 127.0.0.1, with the records that it made.
class proxy_fixture {
public:
  explicit proxy_fixture(const std::vector<std::string>& rules, egress_limits limits = {},
                         std::uint64_t max_bytes = 0) {
    auto policy = parse_egress_policy(rules);
    REQUIRE(policy);
    policy->max_bytes = max_bytes;
    auto socket = listen_on_loopback();
    port_ = socket.port;
    auto made = egress_proxy::serve(
      io, socket.fd, {*policy, limits, [this](const egress_record& r) { add(r); }, spy.dialer()});
    REQUIRE(made);
    proxy = std::move(*made);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  std::vector<egress_record> records() {
    std::lock_guard lock{mutex_};
    return records_;
  }

  /// The one record of a test with one connection.
  egress_record record() {
    REQUIRE(becomes([&] { return !records().empty(); }));
    auto all = records();
    REQUIRE(all.size() == 1);
    return all.front();
  }

private:
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<egress_record> records_;

public:
  // The last to be made, and so the first to go: going, the proxy still records.
  reactor io;
  spy_dialer spy;
  std::unique_ptr<egress_proxy> proxy;

private:
  void add(const egress_record& r) {
    std::lock_guard lock{mutex_};
    records_.push_back(r);
  }
};

/// A client inside: one blocking connection to the proxy.
class client {
public:
  explicit client(std::uint16_t port) : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    auto address = loopback(port);
    timeval limit{patience.count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~client() { ::close(fd_); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// False when the other side takes no more.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0)
        return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// Until `enough` bytes came, or the other side ended.
  [[nodiscard]] std::string read(std::size_t enough = static_cast<std::size_t>(-1)) const {
    std::string got;
    std::array<char, 65536> buffer;
    while (got.size() < enough) {
      auto n = ::recv(fd_, buffer.data(), std::min(buffer.size(), enough - got.size()), 0);
      if (n <= 0)
        break;
      got.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return got;
  }

  /// A send that makes no way for so long fails.
  void give_up_after(millis span) const {
    timeval limit{0, std::chrono::duration_cast<micros>(span).count()};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }

  void half_close() const { ::shutdown(fd_, SHUT_WR); }

  /// The connection ends by a reset, not in order.
  void reset() const {
    linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

private:
  int fd_;
};

constexpr std::string_view established = "HTTP/1.1 200 Connection established\r\n\r\n";

std::string connect_to(std::string_view to) {
  return "CONNECT " + std::string{to} + " HTTP/1.1\r\n\r\n";
}

/// Asks, and reads the whole answer.
std::string ask(std::uint16_t port, std::string_view request) {
  client c{port};
  c.send(request);
  return c.read();
}

/// Opens a tunnel and takes the proxy's word off it.
void open_tunnel(const client& c, std::string_view to) {
  c.send(connect_to(to));
  REQUIRE(c.read(established.size()) == established);
}

std::string pattern(std::size_t bytes, std::uint32_t seed) {
  std::string out(bytes, '\0');
  for (auto& c : out) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' generator
    c = static_cast<char>(seed >> 24);
  }
  return out;
}

std::size_t open_descriptors() {
  std::filesystem::directory_iterator all{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::string local_rule(const raw_server& server) {
  return "127.0.0.1:" + std::to_string(server.port());
}

}  // namespace

TEST_CASE("a tunnel carries 10 MB both ways at once, unchanged", "[egress]") {
  auto down = pattern(10'000'000, 1);
  auto up = pattern(10'000'000, 2);
  std::promise<std::string> arrived;
  raw_server server{[&](auto& peer, int) {
    std::thread writer{[&] {
      peer.send(down);
      peer.half_close();
    }};
    arrived.set_value(peer.read_to_end());
    writer.join();
  }};
  proxy_fixture fx{{local_rule(server)}};
  fx.spy.stand_in = server.port();
  client c{fx.port()};
  open_tunnel(c, local_rule(server));
  std::thread writer{[&] {
    c.send(up);
    c.half_close();
  }};
  CHECK(c.read() == down);
  writer.join();
  CHECK(arrived.get_future().get() == up);
  auto r = fx.record();
  CHECK(r.bytes_up == up.size());
  CHECK(r.bytes_down == down.size());
  CHECK(r.reason == "closed");
}

TEST_CASE("bytes sent together with the CONNECT are not lost", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.send(peer.read_to_end()); }};
  proxy_fixture fx{{local_rule(server)}};
  fx.spy.stand_in = server.port();
  client c{fx.port()};
  c.send(connect_to(local_rule(server)) + "early ");
  REQUIRE(c.read(established.size()) == established);
  c.send("late");
  c.half_close();
  CHECK(c.read() == "early late");
}

TEST_CASE("one side may end its way and still hear the other", "[egress]") {
  SECTION("the client first") {
    raw_server server{[](auto& peer, int) {
      auto got = peer.read_to_end();
      peer.send("after the end of: " + got);
    }};
    proxy_fixture fx{{local_rule(server)}};
    fx.spy.stand_in = server.port();
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    c.send("ping");
    c.half_close();
    CHECK(c.read() == "after the end of: ping");
  }
  SECTION("the server first") {
    std::promise<std::string> arrived;
    raw_server server{[&](auto& peer, int) {
      peer.half_close();
      arrived.set_value(peer.read_to_end());
    }};
    proxy_fixture fx{{local_rule(server)}};
    fx.spy.stand_in = server.port();
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    CHECK(c.read().empty());
    c.send("still here");
    c.half_close();
    CHECK(arrived.get_future().get() == "still here");
  }
}

TEST_CASE("a client that breaks off takes its connection to the server along", "[egress]") {
  std::promise<void> ended;
  raw_server server{[&](auto& peer, int) {
    peer.drain();
    ended.set_value();
  }};
  proxy_fixture fx{{local_rule(server)}};
  fx.spy.stand_in = server.port();
  {
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    c.reset();
  }
  CHECK(ended.get_future().wait_for(patience) == std::future_status::ready);
  CHECK(fx.record().reason == "the client broke the connection");
  CHECK(becomes([&] { return fx.proxy->open() == 0; }));
}

TEST_CASE("what no rule allows is refused with the reason, and nothing is looked up", "[egress]") {
  proxy_fixture fx{{"*.example.org:443", "127.0.0.1:80"}};
  auto answer = ask(fx.port(), connect_to("Other.example:443"));
  constexpr std::string_view why =
    "other.example:443 is not on this sandbox's network allow list (allowed: *.example.org:443, "
    "127.0.0.1:80)";
  CHECK(answer.starts_with("HTTP/1.1 403 " + std::string{why} + "\r\n"));
  CHECK(answer.ends_with("\r\n\r\n" + std::string{why} + "\n"));
  CHECK(fx.record()
        == egress_record{"other.example", 443, "", egress_verdict::refused, std::string{why}, 0, 0,
                         fx.record().duration});
  for (auto* to : {"example.org:443", "a.example.org:80", "127.0.0.1:81", "[::1]:80",
                   "2130706433:80", "0x7f.1:80", "127.1:80", "169.254.169.254:80"}) {
    INFO(to);
    CHECK(ask(fx.port(), connect_to(to)).starts_with("HTTP/1.1 403 "));
  }
  CHECK(ask(fx.port(), "GET http://other.example/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
  CHECK(!ask(fx.port(), "HEAD http://other.example/ HTTP/1.1\r\n\r\n").ends_with("\n\n"));
  CHECK(fx.spy.looked_up().empty());
  CHECK(fx.spy.dialed().empty());
}

TEST_CASE("an allowed name that leads inward is refused before anything connects", "[egress]") {
  proxy_fixture fx{{"rebind.example:80", "127.0.0.1:81"}};
  for (auto* inward : {"127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fe80::1", "fd00::1",
                       "::ffff:10.0.0.5", "64:ff9b::7f00:1", "2002:a00:5::1", "0.0.0.0"}) {
    INFO(inward);
    fx.spy.names["rebind.example"] = {"93.184.216.34", inward};
    auto answer = ask(fx.port(), connect_to("rebind.example:80"));
    CHECK(answer.starts_with("HTTP/1.1 403 rebind.example resolves to "));
    CHECK(answer.find("10.0.0.5") == std::string::npos);
  }
  CHECK(fx.spy.dialed().empty());
  auto records = fx.records();
  REQUIRE(records.size() == 10);
  CHECK(records[1].address == "10.0.0.5");
  CHECK(records[1].verdict == egress_verdict::refused);
  CHECK(records[1].reason
        == "rebind.example resolves to a private address, which the network allow list does not "
           "name");
  CHECK(records[6].address == "10.0.0.5");
}

TEST_CASE("an inward address is reached by name when a rule lists it with that port", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.send(peer.read_to_end()); }};
  proxy_fixture fx{{"inner.example:*", "10.0.0.5:8080"}};
  fx.spy.stand_in = server.port();
  fx.spy.names["inner.example"] = {"10.0.0.5"};
  CHECK(ask(fx.port(), connect_to("inner.example:80")).starts_with("HTTP/1.1 403 "));
  CHECK(fx.spy.dialed().empty());
  client c{fx.port()};
  open_tunnel(c, "inner.example:8080");
  CHECK(fx.spy.dialed() == std::vector<std::string>{"10.0.0.5 8080"});
}

TEST_CASE("a name is looked up once, and what was checked is what is connected to", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.drain(); }};
  proxy_fixture fx{{"two.example:443"}};
  fx.spy.stand_in = server.port();
  fx.spy.fail_first = 1;
  fx.spy.names["two.example"] = {"2606:2800:220:1::1", "93.184.216.34"};
  client c{fx.port()};
  open_tunnel(c, "two.example:443");
  CHECK(fx.spy.looked_up() == std::vector<std::string>{"two.example"});
  CHECK(fx.spy.dialed() == std::vector<std::string>{"2606:2800:220:1::1 443", "93.184.216.34 443"});
}

TEST_CASE("a literal IPv6 address goes where it says, without a lookup", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.drain(); }};
  proxy_fixture fx{{"[::1]:443"}};
  fx.spy.stand_in = server.port();
  client c{fx.port()};
  open_tunnel(c, "[0::1]:443");
  CHECK(fx.spy.looked_up().empty());
  CHECK(fx.spy.dialed() == std::vector<std::string>{"::1 443"});
}

TEST_CASE("no such host and no connection are a 502 that says so", "[egress]") {
  proxy_fixture fx{{"nowhere.example:443", "empty.example:443", "down.example:443"}};
  fx.spy.names["empty.example"] = {};
  fx.spy.names["down.example"] = {"93.184.216.34", "93.184.216.35"};
  fx.spy.fail_first = 2;
  auto answer = ask(fx.port(), connect_to("nowhere.example:443"));
  CHECK(answer.starts_with("HTTP/1.1 502 cannot resolve nowhere.example: Host not found\r\n"));
  answer = ask(fx.port(), connect_to("empty.example:443"));
  CHECK(answer.starts_with("HTTP/1.1 502 empty.example has no address\r\n"));
  answer = ask(fx.port(), connect_to("down.example:443"));
  CHECK(contains(answer, "HTTP/1.1 502 cannot connect to down.example:443: Connection refused"));
  auto records = fx.records();
  REQUIRE(records.size() == 3);
  for (const auto& r : records)
    CHECK(r.verdict == egress_verdict::failed);
  CHECK(records[2].address == "93.184.216.35");
}

TEST_CASE("a lookup or a connection that takes too long is given up with a 504", "[egress]") {
  proxy_fixture fx{{"slow.example:443", "93.184.216.34:443"}, {.connect_time = 50ms}};
  fx.spy.silent = true;
  auto answer = ask(fx.port(), connect_to("slow.example:443"));
  CHECK(
    answer.starts_with("HTTP/1.1 504 slow.example:443 could not be reached within 0.050 s\r\n"));
  CHECK(!fx.spy.waiting());
  CHECK(fx.record().verdict == egress_verdict::failed);
  CHECK(ask(fx.port(), connect_to("93.184.216.34:443")).starts_with("HTTP/1.1 504 "));
}

TEST_CASE("a plain request goes on rewritten, its answer comes back as it is", "[egress]") {
  std::promise<std::string> arrived;
  raw_server server{[&](auto& peer, int) {
    arrived.set_value(peer.read_request());
    peer.send(ok);
  }};
  proxy_fixture fx{{"web.example:80"}};
  fx.spy.stand_in = server.port();
  fx.spy.names["web.example"] = {"93.184.216.34"};
  client c{fx.port()};
  c.send("GET http://Web.example/a?b HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n"
         "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\r\n");
  CHECK(c.read(ok.size()) == ok);
  CHECK(arrived.get_future().get()
        == "GET /a?b HTTP/1.1\r\nHost: web.example\r\nAccept: */*\r\nConnection: close\r\n\r\n");
  c.half_close();
  auto r = fx.record();
  CHECK(r.host == "web.example");
  CHECK(r.port == 80);
  CHECK(r.address == "93.184.216.34");
  CHECK(r.verdict == egress_verdict::allowed);
  CHECK(r.bytes_down == ok.size());
}

TEST_CASE("a second request hidden behind the first's body goes nowhere", "[egress]") {
  constexpr std::string_view head =
    "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
  constexpr std::string_view hidden = "GET /hidden HTTP/1.1\r\nHost: inner.example\r\n\r\n";
  std::promise<std::string> arrived;
  raw_server server{[&](auto& peer, int) { arrived.set_value(peer.read_to_end()); }};
  proxy_fixture fx{{"web.example:80"}};
  fx.spy.stand_in = server.port();
  fx.spy.names["web.example"] = {"93.184.216.34"};
  client c{fx.port()};
  std::string request = "POST http://web.example/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
  SECTION("in one piece") {
    c.send(request + "hello" + std::string{hidden});
  }
  SECTION("in pieces") {
    c.send(request + "he");
    CHECK(becomes([&] { return server.accepted() == 1; }));
    c.send("llo" + std::string{hidden});
  }
  c.half_close();
  CHECK(arrived.get_future().get() == std::string{head} + "hello");
  CHECK(c.read().empty());
  CHECK(fx.record().bytes_up == head.size() + 5);
}

TEST_CASE("a server's answer to an upload that it breaks off still arrives", "[egress]") {
  auto socket = listen_on_loopback();
  std::promise<void> stuck;
  std::promise<void> closed;
  std::thread server{[&] {
    int fd = ::accept(socket.fd, nullptr, nullptr);
    stuck.get_future().wait();
    ::send(fd, ok.data(), ok.size(), MSG_NOSIGNAL);
    ::close(fd);  // with bytes unread: that is a reset
    closed.set_value();
  }};
  auto to = "127.0.0.1:" + std::to_string(socket.port);
  proxy_fixture fx{{to}};
  fx.spy.stand_in = socket.port;
  client c{fx.port()};
  c.send("POST http://" + to + "/ HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n");
  c.give_up_after(200ms);
  std::string chunk(1'000'000, 'x');
  int taken = 0;
  while (taken < 100 && c.send(chunk))
    ++taken;
  CHECK(taken < 100);
  // The answer and the reset come while the proxy looks away, and a write of its own is waiting.
  fx.io.post([&] {
    stuck.set_value();
    closed.get_future().wait();
  });
  CHECK(c.read(ok.size()) == ok);
  server.join();
  ::close(socket.fd);
}

TEST_CASE("what is no request to a proxy gets a 400, a head without end a 431", "[egress]") {
  proxy_fixture fx{{"*.example.org:*"}, {.head_bytes = 1024}};
  CHECK(ask(fx.port(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 this is a proxy"));
  CHECK(ask(fx.port(), "\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(ask(fx.port(), connect_to("a.example.org:443\r\nX: y")).starts_with("HTTP/1.1 400 "));
  CHECK(ask(fx.port(), std::string(100'000, 'x')).starts_with("HTTP/1.1 431 "));
  CHECK(fx.spy.looked_up().empty());
  auto records = fx.records();
  REQUIRE(records.size() == 4);
  for (const auto& r : records) {
    CHECK(r.verdict == egress_verdict::refused);
    CHECK(r.host.empty());
  }
}

TEST_CASE("a refused client may finish what it sends, and then reads why", "[egress]") {
  proxy_fixture fx{{}, {.linger_time = patience}};
  client c{fx.port()};
  c.send("POST http://a.example/ HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n");
  CHECK(becomes([&] { return !fx.records().empty(); }));
  for (int i = 0; i < 50; ++i)
    CHECK(c.send(std::string(100'000, 'x')));
  c.half_close();
  CHECK(c.read().starts_with("HTTP/1.1 403 "));
}

TEST_CASE("a refused client that goes on sending is cut off, after it could read why", "[egress]") {
  proxy_fixture fx{{}, {.linger_time = 50ms}};
  client c{fx.port()};
  c.send(connect_to("a.example:443") + "more");
  CHECK(contains(c.read(), "(nothing is allowed)"));
  auto chunk = std::string(65536, 'x');
  CHECK(becomes([&] {
    c.send(chunk);
    return fx.proxy->open() == 0;
  }));
}

TEST_CASE("a client that is slow with its head is answered at its deadline", "[egress]") {
  proxy_fixture fx{{}, {.head_time = 50ms, .linger_time = 50ms}};
  auto before = steady_clock::now();
  client c{fx.port()};
  c.send("GET http://a.exam");
  CHECK(c.read().starts_with("HTTP/1.1 408 the request's head did not come within 0.050 s\r\n"));
  CHECK(steady_clock::now() - before >= 50ms);
  CHECK(becomes([&] { return fx.proxy->open() == 0; }));
  client quiet{fx.port()};
  CHECK(quiet.read().starts_with("HTTP/1.1 408 "));
}

TEST_CASE("a tunnel that nothing moves through, or that is open too long, ends", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.drain(); }};
  SECTION("idle") {
    proxy_fixture fx{{local_rule(server)}, {.idle_time = 50ms}};
    fx.spy.stand_in = server.port();
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    CHECK(c.read().empty());
    CHECK(fx.record().reason == "no byte moved for 0.050 s");
  }
  SECTION("busy") {
    proxy_fixture fx{{local_rule(server)}, {.idle_time = 10s, .total_time = 500ms}};
    fx.spy.stand_in = server.port();
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    CHECK(becomes([&] {
      c.send("x");
      return !fx.records().empty();
    }));
    CHECK(fx.record().reason == "open for longer than 0.500 s");
    CHECK(fx.record().duration >= 500ms);
  }
}

TEST_CASE("a reader that does not read stops the writer, and nothing queues up", "[egress]") {
  raw_server server{[](auto& peer, int) {
    for (int i = 0; i < 100; ++i)
      peer.send(std::string(1'000'000, 'x'));
  }};
  proxy_fixture fx{{local_rule(server)}, {.idle_time = 300ms}};
  fx.spy.stand_in = server.port();
  client c{fx.port()};
  open_tunnel(c, local_rule(server));
  auto r = fx.record();
  CHECK(r.reason == "no byte moved for 0.300 s");
  // What the kernel's own buffers took: at most 6 MB to receive and 4 MB to send, by default.
  CHECK(r.bytes_down < 50'000'000);
}

TEST_CASE("past the number of connections, the next one waits for one to end", "[egress]") {
  raw_server server{[](auto& peer, int) {
    while (!peer.read_request().empty())
      peer.send("pong");
  }};
  proxy_fixture fx{{local_rule(server)}, {.connections = 2}};
  fx.spy.stand_in = server.port();
  auto first = std::make_unique<client>(fx.port());
  open_tunnel(*first, local_rule(server));
  client second{fx.port()};
  open_tunnel(second, local_rule(server));
  client third{fx.port()};
  third.send(connect_to(local_rule(server)));
  // By the time that this came and went, the reactor has seen the third too.
  for (int i = 0; i < 3; ++i) {
    second.send("ping\r\n\r\n");
    CHECK(second.read(4) == "pong");
  }
  CHECK(fx.proxy->open() == 2);
  CHECK(fx.spy.dialed().size() == 2);
  first.reset();
  CHECK(third.read(established.size()) == established);
  CHECK(fx.proxy->open() == 2);
}

TEST_CASE("the policy's bytes are counted over all connections, then nothing moves", "[egress]") {
  std::promise<std::string> arrived;
  raw_server server{[&](auto& peer, int number) {
    auto got = peer.read_to_end();
    if (number == 2)
      arrived.set_value(got);
  }};
  proxy_fixture fx{{local_rule(server)}, {}, 1000};
  fx.spy.stand_in = server.port();
  {
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    c.send(std::string(600, 'a'));
    c.half_close();
    CHECK(c.read().empty());
  }
  client c{fx.port()};
  open_tunnel(c, local_rule(server));
  c.send(std::string(500, 'b'));
  CHECK(c.read().empty());
  CHECK(arrived.get_future().get().empty());
  CHECK(contains(ask(fx.port(), connect_to(local_rule(server))), "403 the sandbox's bytes"));
  auto records = fx.records();
  REQUIRE(records.size() == 3);
  CHECK(records[0].bytes_up == 600);
  CHECK(records[1].verdict == egress_verdict::allowed);
  CHECK(records[1].bytes_up == 0);
  CHECK(records[1].reason == "the sandbox's bytes for the network are used up");
  CHECK(records[2].verdict == egress_verdict::refused);
}

TEST_CASE("a proxy that is destroyed ends and records whatever goes on, and leaks nothing",
          "[egress]") {
  raw_server server{[](auto& peer, int) { peer.drain(); }};
  auto before = open_descriptors();
  {
    proxy_fixture fx{{local_rule(server), "slow.example:443"}};
    fx.spy.stand_in = server.port();
    std::deque<client> tunnels;
    for (int i = 0; i < 5; ++i)
      open_tunnel(tunnels.emplace_back(fx.port()), local_rule(server));
    tunnels.front().send("x");
    client reading{fx.port()};
    reading.send("CONN");
    client dialing{fx.port()};
    fx.io.post([&] { fx.spy.silent = true; });
    dialing.send(connect_to("slow.example:443"));
    CHECK(becomes([&] { return fx.spy.waiting() && fx.proxy->open() == 7; }));
    fx.proxy.reset();
    CHECK(fx.records().size() == 7);
    for (const auto& r : fx.records())
      CHECK(r.reason == "the sandbox was closed");
    CHECK(!fx.spy.waiting());
    for (const auto& t : tunnels)
      CHECK(t.read().empty());
    CHECK(reading.read().empty());
    CHECK(dialing.read().empty());
  }
  CHECK(becomes([&] { return open_descriptors() == before; }));
}

TEST_CASE("a proxy may be destroyed by its own record, and after its reactor stopped", "[egress]") {
  SECTION("by its record") {
    reactor io;
    std::promise<void> gone;
    std::unique_ptr<egress_proxy> proxy;
    auto socket = listen_on_loopback();
    auto made = egress_proxy::serve(io, socket.fd, {.on_connection = [&](const egress_record&) {
                                      proxy.reset();
                                      gone.set_value();
                                    }});
    REQUIRE(made);
    proxy = std::move(*made);
    client c{socket.port};
    c.send(connect_to("a.example:1"));
    CHECK(gone.get_future().wait_for(patience) == std::future_status::ready);
    CHECK(becomes([&] { return c.read().empty(); }));
  }
  SECTION("after its reactor") {
    raw_server server{[](auto& peer, int) { peer.drain(); }};
    proxy_fixture fx{{local_rule(server)}};
    fx.spy.stand_in = server.port();
    client c{fx.port()};
    open_tunnel(c, local_rule(server));
    fx.io.stop();
    fx.proxy.reset();
    CHECK(fx.records().size() == 1);
  }
}

TEST_CASE("what is no listening TCP socket is refused, and closed all the same", "[egress]") {
  reactor io;
  auto before = open_descriptors();
  for (int fd : {::socket(AF_UNIX, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_DGRAM, 0),
                 ::socket(AF_INET, SOCK_STREAM, 0), ::dup(0)}) {
    auto made = egress_proxy::serve(io, fd, {});
    REQUIRE(!made);
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(contains(made.error().detail, "not a listening TCP socket"));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("the system's dialer finds loopback by name and by address", "[egress]") {
  raw_server server{[](auto& peer, int) { peer.send("hello"); }};
  auto port = std::to_string(server.port());
  reactor io;
  auto socket = listen_on_loopback();
  auto policy = parse_egress_policy({"127.0.0.1:" + port});
  REQUIRE(policy);
  auto proxy = egress_proxy::serve(io, socket.fd, {.policy = *policy});
  REQUIRE(proxy);
  CHECK(ask(socket.port, connect_to("127.0.0.1:" + port)) == std::string{established} + "hello");
}

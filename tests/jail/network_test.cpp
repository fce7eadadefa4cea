#include "tests/jail/jail_fixture.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Answers each connection on a port of 127.0.0.1 with one page.
class page_server {
public:
  explicit page_server(bool answers = true) : answers_{answers} {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener_, 8) == 0);
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread{[this] { serve(); }};
  }
  ~page_server() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto told = ::write(stop_, &one, sizeof one);
    thread_.join();
    ::close(listener_);
    ::close(stop_);
  }
  page_server(const page_server&) = delete;
  page_server& operator=(const page_server&) = delete;

  /// Until it has seen the end of all connections.
  void wait_idle() const {
    while (open_ > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }

  [[nodiscard]] std::string at() const { return "127.0.0.1:" + std::to_string(port_); }

private:
  void serve() {
    for (;;) {
      pollfd waits[] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
      ::poll(waits, 2, -1);
      if (waits[1].revents != 0)
        return;
      ++open_;
      auto fd = ::accept(listener_, nullptr, nullptr);
      if (answers_)
        answer(fd);
      char rest[64];
      while (::recv(fd, rest, sizeof rest, 0) > 0) {
      }
      ::close(fd);
      --open_;
    }
  }

  static void answer(int fd) {
    char request[4'096];
    [[maybe_unused]] auto got = ::recv(fd, request, sizeof request, 0);
    const std::string page =
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    [[maybe_unused]] auto sent = ::send(fd, page.data(), page.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
  }

  bool answers_;
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int stop_ = ::eventfd(0, EFD_CLOEXEC);
  int port_ = 0;
  std::atomic<int> open_{0};
  std::thread thread_;
};

class network_fixture : public jail_fixture {
public:
  explicit network_fixture(const std::vector<std::string>& rules)
    : jail_fixture{options_with(rules)} {}

  std::shared_ptr<sandbox> open_network() {
    sandbox_spec spec;
    spec.network = true;
    auto s = open(spec);
    hear(*s);
    return s;
  }

  void hear(sandbox& s) {
    s.hear_connections([this](const egress_record& r) {
      std::lock_guard lock{mutex_};
      records_.push_back(r);
    });
  }

  std::vector<egress_record> records() {
    std::lock_guard lock{mutex_};
    return records_;
  }

private:
  static jail_options options_with(const std::vector<std::string>& rules) {
    jail_options options;
    auto policy = parse_egress_policy(rules);
    REQUIRE(policy);
    options.profiles.front().network = std::move(*policy);
    return options;
  }

  std::mutex mutex_;
  std::vector<egress_record> records_;
};

std::string fetch(const std::string& url) {
  return R"(
import urllib.request, urllib.error
def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            return [reply.status, reply.read().decode()]
    except urllib.error.HTTPError as e:
        return [e.code, ""]
fetch(")" + url
         + "\")";
}

}  // namespace

TEST_CASE("code connects to what the profile lists, by the proxy, and each try is told",
          "[jail][network]") {
  page_server listed, other;
  network_fixture fx{{listed.at()}};
  auto s = fx.open_network();
  CHECK(tagged(fx.run(*s, fetch("http://" + listed.at() + "/page"))) == "[200,\"hello\"]");
  CHECK(tagged(fx.run(*s, fetch("http://" + other.at() + "/page"))) == "[403,\"\"]");
  CHECK(tagged(fx.run(*s, fetch("http://169.254.169.254/latest/meta-data"))) == "[403,\"\"]");
  CHECK(fx.close(*s).clean());
  listed.wait_idle();
  auto seen = fx.records();
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].verdict == egress_verdict::allowed);
  CHECK(seen[0].host + ":" + std::to_string(seen[0].port) == listed.at());
  CHECK(seen[0].bytes_down > 5);
  CHECK(seen[1].verdict == egress_verdict::refused);
  CHECK(seen[2].verdict == egress_verdict::refused);
  CHECK(seen[2].host == "169.254.169.254");
}

TEST_CASE("there is no way around the proxy", "[jail][network]") {
  page_server server;
  network_fixture fx{{server.at()}};
  auto s = fx.open_network();
  auto port = server.at().substr(server.at().find(':') + 1);
  CHECK(tagged(fx.run(*s, R"(
import socket, struct
def outcome(family, kind, to=None, act="connect"):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(5)
            getattr(s, act)(to)
            return "done"
    except OSError as e:
        return "refused"
here = ("127.0.0.1", )" + port
                            + R"()
[outcome(socket.AF_INET, socket.SOCK_STREAM, here),
 outcome(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), "bind"),
 outcome(socket.AF_INET, socket.SOCK_DGRAM, here),
 outcome(socket.AF_INET6, socket.SOCK_STREAM, ("::1", )"
                            + port + R"()),
 outcome(socket.AF_UNIX, socket.SOCK_STREAM, "\0abstract"),
 outcome(socket.AF_INET, socket.SOCK_RAW, here),
 outcome(socket.AF_NETLINK, socket.SOCK_RAW, (0, 0)),
 outcome(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 3128))])"))
        == R"(["refused","refused","refused","refused","refused","refused","refused","done"])");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("the network is only for whom it was asked", "[jail][network]") {
  page_server server;
  network_fixture fx{{server.at()}};
  auto s = fx.open();
  auto o = fx.run(*s, "import socket\nsocket.socket()");
  REQUIRE(o.error);
  CHECK(o.error->type == "PermissionError");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a connection that is open at the end is told before the end", "[jail][network]") {
  page_server silent{false};
  network_fixture fx{{silent.at()}};
  auto s = fx.open_network();
  auto o = fx.run(*s, R"(
import os, socket
tunnel = socket.create_connection(("127.0.0.1", 3128), timeout=20)
tunnel.sendall(b"CONNECT )"
                        + silent.at() + R"( HTTP/1.1\r\nHost: )" + silent.at() + R"(\r\n\r\n")
tunnel.recv(4096).split()[1].decode())");
  CHECK(tagged(o) == "\"200\"");
  CHECK(fx.records().empty());
  CHECK(fx.close(*s).clean());
  silent.wait_idle();
  auto seen = fx.records();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].verdict == egress_verdict::allowed);
  CHECK(take_footprint().children.size() == 1);  // the zygote
}

TEST_CASE("each sandbox has a proxy of its own", "[jail][network]") {
  page_server server;
  network_fixture fx{{server.at()}};
  std::vector<std::shared_ptr<sandbox>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(fx.open_network());
  for (auto& s : all)
    CHECK(tagged(fx.run(*s, fetch("http://" + server.at() + "/"))) == "[200,\"hello\"]");
  for (auto& s : all)
    CHECK(fx.close(*s).clean());
  server.wait_idle();
  CHECK(fx.records().size() == 4);
}

TEST_CASE("a branch has a network of its own, under its session's rules", "[jail][network][fork]") {
  page_server listed, other;
  network_fixture fx{{listed.at()}};
  auto s = fx.open_network();
  constexpr auto place = "import os\nos.readlink('/proc/self/ns/net')";
  CHECK(tagged(fx.run(*s, fetch("http://" + listed.at() + "/"))) == "[200,\"hello\"]");
  auto b = fx.branch(*s);
  auto c = fx.branch(*b);
  fx.hear(*c);
  auto of_session = tagged(fx.run(*s, place)), of_branch = tagged(fx.run(*b, place)),
       of_its_branch = tagged(fx.run(*c, place));
  CHECK(of_session != of_branch);
  CHECK(of_branch != of_its_branch);
  CHECK(of_session != of_its_branch);
  CHECK(fx.close(*s).clean());
  // The session and its proxy are gone. Nobody hears of the first branch's connections.
  CHECK(tagged(fx.run(*b, "fetch('http://" + listed.at() + "/')")) == "[200,\"hello\"]");
  CHECK(tagged(fx.run(*c, "fetch('http://" + listed.at() + "/')")) == "[200,\"hello\"]");
  CHECK(tagged(fx.run(*c, "fetch('http://" + other.at() + "/')")) == "[403,\"\"]");
  CHECK(fx.close(*b).clean());
  CHECK(fx.close(*c).clean());
  listed.wait_idle();
  auto seen = fx.records();
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].verdict == egress_verdict::allowed);
  CHECK(seen[1].verdict == egress_verdict::allowed);
  CHECK(seen[2].verdict == egress_verdict::refused);
}

TEST_CASE("an open connection is not branched, and it is said", "[jail][network][fork]") {
  page_server silent{false};
  network_fixture fx{{silent.at()}};
  auto s = fx.open_network();
  CHECK(describe(fx.run(*s, "import socket\nc = socket.create_connection(('127.0.0.1', 3128))"))
        == "ok");
  auto made = fx.fork(*s, {{}}).front();
  REQUIRE(!made);
  CHECK(made.error().code == errc::denied);
  CHECK(made.error().detail.find("socket") != std::string::npos);
  CHECK(describe(fx.run(*s, "c.close()")) == "ok");
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "socket.create_connection(('127.0.0.1', 3128)).close()\n1")) == "1");
  CHECK(fx.close(*s).clean());
  CHECK(fx.close(*b).clean());
}

TEST_CASE("more connections at once than allowed wait until one ends", "[jail][network]") {
  page_server server;
  network_fixture fx{{server.at()}};
  auto s = fx.open_network();
  auto o = fx.run(*s, "count = " + std::to_string(max_sandbox_connections) + "\nat = '"
                        + server.at() + R"py('
import socket
def connect(): return socket.create_connection(("127.0.0.1", 3128), timeout=20)
idle = [connect() for _ in range(count)]
late = connect()
late.sendall(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
late.settimeout(0.5)
try:
    waited = not late.recv(1)
except TimeoutError:
    waited = True
idle.pop().close()
late.settimeout(20)
[waited, late.recv(12).decode()])py");
  INFO(describe(o));
  CHECK(tagged(o) == R"([true,"HTTP/1.1 200"])");
  CHECK(fx.close(*s).clean());
  server.wait_idle();
}

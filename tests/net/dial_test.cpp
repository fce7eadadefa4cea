#include "runtime/net/address_book.hpp"
#include "tests/net/fixed_names.hpp"
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <iterator>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// An address on which connections are neither taken nor refused: a listener that never accepts,
/// its queue full.
class black_hole {
public:
  black_hole(const char* address, std::uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    REQUIRE(::inet_pton(AF_INET, address, &where.sin_addr) == 1);
    auto* generic = reinterpret_cast<sockaddr*>(&where);
    open_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(open_.front(), generic, sizeof where) == 0);
    REQUIRE(::listen(open_.front(), 0) == 0);
    for (int i = 0; i < 4; ++i) {
      open_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      static_cast<void>(::connect(open_.back(), generic, sizeof where));
    }
  }
  ~black_hole() {
    for (auto fd : open_)
      ::close(fd);
  }
  black_hole(const black_hole&) = delete;
  black_hole& operator=(const black_hole&) = delete;

private:
  std::vector<int> open_;
};

std::ptrdiff_t open_descriptors() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator{"/proc/self/fd"}, fs::directory_iterator{});
}

const error gone{errc::not_found, "the host name 'x' does not exist; check its spelling"};
const error no_dns{errc::unavailable, "no DNS server answered for the host name 'x'"};

}  // namespace

TEST_CASE("an address that does not answer costs 250 ms, and its socket is closed", "[dial]") {
  reactor io;
  auto server = serve(io, echo);
  black_hole hole{"127.0.0.2", server->port()};
  auto names = std::make_shared<fixed_names>();
  names->say("two.example", {"127.0.0.2"}, {"127.0.0.1"});
  http_client client{io, {.connect_timeout = patience}, names};
  auto before = open_descriptors();
  auto began = steady_clock::now();
  good(fetch(client, post({"http", "two.example", server->port(), ""}), soon(patience)));
  CHECK(steady_clock::now() - began >= 250ms);
  CHECK(client.stats().open == 1);
  CHECK(becomes([&] { return open_descriptors() == before + 2; }));  // one connection, both ends
}

TEST_CASE("an address that refuses is followed by the next at once", "[dial]") {
  reactor io;
  auto server = serve(io, echo);
  auto names = std::make_shared<fixed_names>();
  names->say("two.example", {"127.0.0.2", "127.0.0.3"}, {"127.0.0.4", "127.0.0.1"});
  http_client client{io, {.connect_timeout = patience}, names};
  good(fetch(client, post({"http", "two.example", server->port(), ""}), soon(patience)));
  CHECK(client.stats().connections_opened == 1);
}

TEST_CASE("a lookup of IPv6 addresses that hangs holds nobody up", "[dial]") {
  reactor io;
  auto server = serve(io, echo);
  auto names = std::make_shared<fixed_names>();
  names->say("half.example", address_family::v4,
             name_resolver::addresses{boost::asio::ip::make_address("127.0.0.1")});
  http_client client{io, {}, names};
  auto began = steady_clock::now();
  good(fetch(client, post({"http", "half.example", server->port(), ""}), soon(patience)));
  CHECK(steady_clock::now() - began >= 50ms);
}

TEST_CASE("when all addresses fail, the one that says most is told", "[dial]") {
  reactor io;
  auto names = std::make_shared<fixed_names>();
  names->say("dead.example", {"127.0.0.1"}, {"127.0.0.2"});
  http_client client{io, {}, names};
  std::uint16_t port = raw_server{[](auto&, int) {}}.port();
  auto f = failed(fetch(client, post({"http", "dead.example", port, ""}), soon(patience)));
  CHECK(f.what.code == errc::unavailable);
  CHECK(contains(f.what.detail, "http://dead.example:" + std::to_string(port)
                                  + ": connection refused; is a server listening there?"));
  CHECK(!f.sent);
  CHECK(client.stats().open == 0);
}

TEST_CASE("a lookup that does not end is given up with the time for a connection", "[dial]") {
  reactor io;
  http_client client{io, {.connect_timeout = 30ms}, std::make_shared<fixed_names>()};
  auto f = failed(fetch(client, post({"http", "slow.example", 80, ""})));
  CHECK(f.what.code == errc::timeout);
  CHECK(
    contains(f.what.detail, "no connection within 30 ms, given up while looking up the host name"));
  CHECK(!f.sent);
  CHECK(client.stats().open == 0);
}

TEST_CASE("what the lookups say decides what is told, and whether to try again", "[dial]") {
  reactor io;
  auto names = std::make_shared<fixed_names>();
  http_client client{io, {}, names};
  auto told = [&](const fixed_names::answer& v6, const fixed_names::answer& v4) {
    names->say("x", address_family::v6, v6);
    names->say("x", address_family::v4, v4);
    auto f = failed(fetch(client, post({"http", "x", 80, ""}), soon(patience)));
    CHECK(!f.sent);
    return f.what;
  };
  const name_resolver::addresses none;
  auto worded = [](const error& e) { return error{e.code, "http://x:80: " + e.detail}; };
  CHECK(told(fail(gone), fail(gone)) == worded(gone));
  CHECK(told(fail(no_dns), fail(gone)) == worded(no_dns));
  CHECK(told(fail(gone), fail(no_dns)) == worded(no_dns));
  CHECK(told(none, fail(gone)) == worded(gone));
  auto empty = told(none, none);
  CHECK(empty.code == errc::not_found);
  CHECK(contains(empty.detail, "the host name has no address"));
}

TEST_CASE("a host is looked up once for all that want it, and known for a while", "[dial]") {
  reactor io;
  auto server = serve(io, echo);
  auto names = std::make_shared<fixed_names>();
  names->say("one.example", {}, {"127.0.0.1"});
  http_client client{io, {}, names};
  std::vector<pending> calls(20);
  io.post([&] {
    for (auto& call : calls)
      client.send(post({"http", "one.example", server->port(), ""}), never, call.done());
  });
  for (auto& call : calls)
    CHECK(good(call.wait()).status == 200);
  CHECK(names->asked() == 2);  // one for each family
}

TEST_CASE("addresses that have grown old serve on while DNS does not answer", "[dial]") {
  reactor io;
  auto names = std::make_shared<fixed_names>();
  auto book = std::make_shared<address_book>(io, names, 0ms);
  auto ask = [&] {
    std::promise<address_book::answer> got;
    io.post([&] {
      book->find("x", address_family::v4, [&](const auto& answer) { got.set_value(answer); });
    });
    return got.get_future().get();
  };
  names->say("x", {}, {"127.0.0.9"});
  auto known = ask();
  names->say("x", address_family::v4, fail(no_dns));
  CHECK(ask() == known);
  names->say("x", address_family::v4, fail(gone));
  CHECK(ask() == fixed_names::answer{fail(gone)});
  names->say("x", address_family::v4, fail(no_dns));
  CHECK(ask() == fixed_names::answer{fail(no_dns)});
}

TEST_CASE("the system's resolver knows localhost, and answers for what it does not", "[dial]") {
  auto names = system_resolver();
  auto ask = [&](const std::string& name) {
    auto got = std::make_shared<std::promise<result<name_resolver::addresses>>>();
    names->look_up(name, address_family::v4, [got](auto answer) { got->set_value(answer); });
    return got->get_future().get();
  };
  // The second name is in no machine's /etc/hosts.
  for (const auto* name : {"localhost", "any.localhost"}) {
    auto found = ask(name);
    REQUIRE(found);
    CHECK(*found == name_resolver::addresses{boost::asio::ip::make_address("127.0.0.1")});
  }
  // A label may have 63 bytes (RFC 1035): no server is asked for this one.
  auto none = ask(std::string(70, 'a'));
  REQUIRE(!none);
  CHECK(none.error().code == errc::not_found);
  CHECK(contains(none.error().detail, "does not exist; check its spelling"));
}

// Bodies that a handler makes while they are sent.
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

using next = body_piece::next;

/// Gives the pieces one after the other, from the thread that asks.
body_source pieces(std::vector<body_piece> all) {
  return [all = std::move(all), i = std::size_t{0}](const give_piece_fn& give) mutable {
    give(all.at(i++));
  };
}

std::unique_ptr<http_server> serve_source(reactor& io, const std::function<body_source()>& make) {
  return serve(io, [make](server_request, const auto& respond) {
    server_response r;
    r.headers = {{"content-type", "text/event-stream"}};
    r.source = make();
    respond(std::move(r));
  });
}

/// A client that is nothing but a socket.
class bare_client {
public:
  bare_client(std::uint16_t port, std::string_view request)
    : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL)
            == static_cast<ssize_t>(request.size()));
  }
  ~bare_client() { ::close(fd_); }
  bare_client(const bare_client&) = delete;
  bare_client& operator=(const bare_client&) = delete;

  /// What comes until the end; `error_number` says how that came.
  std::string read_all() {
    std::string got;
    char buffer[4096];
    while (true) {
      auto n = ::recv(fd_, buffer, sizeof buffer, 0);
      error_number = n < 0 ? errno : 0;
      if (n <= 0)
        return got;
      got.append(buffer, static_cast<std::size_t>(n));
    }
  }

  int error_number = 0;

private:
  int fd_;
};

constexpr std::string_view get_close = "GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

}  // namespace

TEST_CASE("a body from a source is chunked as RFC 9112 says, and the connection goes on",
          "[source]") {
  reactor io;
  auto server = serve_source(io, [] {
    return pieces({{"hello ", next::more}, {"", next::more}, {"world, 16 bytes.", next::end}});
  });
  bare_client raw{server->port(), get_close};
  auto got = raw.read_all();
  CHECK(contains(got, "transfer-encoding: chunked\r\n"));
  CHECK(got.ends_with("\r\n\r\n6\r\nhello \r\n10\r\nworld, 16 bytes.\r\n0\r\n\r\n"));
  CHECK(!got.starts_with("HTTP/1.1 200 OK\r\ncontent-length"));

  http_client client{io, {}};
  for (int i = 0; i < 3; ++i)
    CHECK(good(fetch(client, get(local(server->port())))).body == "hello world, 16 bytes.");
  CHECK(client.stats().connections_opened == 1);
}

TEST_CASE("a source may end with nothing", "[source]") {
  reactor io;
  auto server = serve_source(io, [] { return pieces({{"all", next::more}, {"", next::end}}); });
  http_client client{io, {}};
  CHECK(good(fetch(client, get(local(server->port())))).body == "all");
  auto empty = serve_source(io, [] { return pieces({{"", next::end}}); });
  CHECK(good(fetch(client, get(local(empty->port())))).body.empty());
}

TEST_CASE("a client of HTTP/1.0 gets a body that ends with the connection", "[source]") {
  reactor io;
  auto server = serve_source(io, [] { return pieces({{"a", next::more}, {"b", next::end}}); });
  bare_client raw{server->port(), "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"};
  auto got = raw.read_all();
  CHECK(got.ends_with("\r\n\r\nab"));
  CHECK(!contains(got.substr(0, got.find("\r\n\r\n")), "chunked"));
  auto plain = serve(io, [](server_request, const auto& respond) { respond({}); });
  bare_client kept{plain->port(), "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"
                                  "GET / HTTP/1.0\r\n\r\n"};
  auto two = kept.read_all();
  CHECK(contains(two, "connection: keep-alive"));
  CHECK(two.find("HTTP/1.1 200", 10) != std::string::npos);
}

TEST_CASE("a HEAD gets the head alone, and its source is never asked", "[source]") {
  reactor io;
  auto server = serve_source(io, [] { return pieces({}); });  // .at() would throw
  bare_client raw{server->port(), "HEAD / HTTP/1.1\r\nconnection: close\r\n\r\n"};
  CHECK(raw.read_all().ends_with("\r\n\r\n"));
}

TEST_CASE("a cut body ends without its last chunk, a reset one with a reset", "[source]") {
  reactor io;
  auto cut = serve_source(io, [] { return pieces({{"half", next::more}, {"", next::cut}}); });
  bare_client a{cut->port(), get_close};
  CHECK(a.read_all().ends_with("4\r\nhalf\r\n"));
  CHECK(a.error_number == 0);
  auto reset = serve_source(io, [] { return pieces({{"half", next::more}, {"", next::reset}}); });
  bare_client b{reset->port(), get_close};
  b.read_all();
  CHECK(b.error_number == ECONNRESET);
  auto at_once = serve(io, [](server_request, const auto& respond) {
    server_response r;
    r.drop = r.reset = true;
    respond(std::move(r));
  });
  bare_client c{at_once->port(), get_close};
  CHECK(c.read_all().empty());
  CHECK(c.error_number == ECONNRESET);
}

TEST_CASE("a source that throws, or forgets its piece, cuts the body", "[source]") {
  reactor io;
  for (bool throws : {true, false}) {
    auto server = serve_source(io, [throws] {
      return [throws, i = 0](const give_piece_fn& give) mutable {
        if (i++ == 0)
          give({"begun", next::more});
        else if (throws)
          throw std::runtime_error{"no more"};
      };
    });
    bare_client raw{server->port(), get_close};
    CHECK(raw.read_all().ends_with("5\r\nbegun\r\n"));
  }
}

TEST_CASE("a piece may come later, from any thread", "[source]") {
  reactor io;
  std::vector<std::thread> threads;
  auto server = serve_source(io, [&] {
    return [&threads, i = 0](const give_piece_fn& give) mutable {
      threads.emplace_back([give, last = ++i == 3] {
        give({"piece.", last ? next::end : next::more});
        give({"second", next::end});
      });
    };
  });
  http_client client{io, {}};
  CHECK(good(fetch(client, get(local(server->port())))).body == "piece.piece.piece.");
  for (auto& t : threads)
    t.join();
}

TEST_CASE("a client that does not read costs one piece, and its source goes with it", "[source]") {
  reactor io;
  constexpr std::size_t piece_bytes = 64u << 10;
  // Linux lets a socket's two buffers grow to 4 and 6 MB (tcp_wmem, tcp_rmem).
  constexpr std::size_t kernel_bytes = 32u << 20;
  auto asked = std::make_shared<std::atomic<std::size_t>>(0);
  std::weak_ptr<void> alive = asked;
  auto server = serve_source(io, [asked = std::weak_ptr{asked}] {
    return [asked = asked.lock()](const give_piece_fn& give) {
      ++*asked;
      give({std::string(piece_bytes, 'x'), next::more});
    };
  });
  {
    bare_client silent{server->port(), get_close};
    CHECK(becomes([&] { return *asked > 1; }));
    CHECK(becomes([&] {
      auto before = asked->load();
      std::this_thread::sleep_for(100ms);
      return *asked == before;
    }));
    CHECK(*asked * piece_bytes < kernel_bytes);
  }
  asked.reset();
  CHECK(becomes([&] { return server->open() == 0 && alive.expired(); }));
}

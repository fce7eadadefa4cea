// Answers that are read while they come, over real sockets.
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view chunked_head =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
constexpr std::string_view last_chunk = "0\r\n\r\n";

std::string chunk(std::string_view text) {
  std::string size;
  for (auto n = text.size(); n > 0; n /= 16)
    size.insert(size.begin(), "0123456789abcdef"[n % 16]);
  return size + "\r\n" + std::string{text} + "\r\n";
}

/// What came, piece by piece; enough once `wanted` is in it.
class collected {
public:
  explicit collected(std::string wanted = {}) : state_{std::make_shared<state>()} {
    state_->wanted = std::move(wanted);
  }

  http_stream stream(millis silence = millis{0}) {
    return {[s = state_](std::string_view piece) {
              std::lock_guard lock{s->mutex};
              s->text += piece;
              return s->wanted.empty() || s->text.find(s->wanted) == std::string::npos;
            },
            silence};
  }

  std::string text() const {
    std::lock_guard lock{state_->mutex};
    return state_->text;
  }

  bool has(std::string_view part) const {
    return becomes([&] { return text().find(part) != std::string::npos; });
  }

private:
  struct state {
    std::mutex mutex;
    std::string text;
    std::string wanted;
  };
  std::shared_ptr<state> state_;
};

answer fetch_streamed(http_client& client, std::uint16_t port, http_stream how) {
  pending call;
  client.send(post(local(port)), soon(patience), std::move(how), call.done());
  return call.wait();
}

}  // namespace

TEST_CASE("pieces of a body arrive while the server is still at it", "[http_stream]") {
  reactor io;
  std::promise<void> seen;
  raw_server server{[&](raw_server::peer& p, int) {
    p.read_request();
    p.send(std::string{chunked_head} + chunk("first "));
    seen.get_future().wait();
    p.send(chunk("second") + std::string{last_chunk});
    p.drain();
  }};
  http_client client{io, {}};
  collected got;
  pending call;
  client.send(post(local(server.port())), soon(patience), got.stream(), call.done());
  CHECK(got.has("first "));
  CHECK(!call.ready());
  seen.set_value();
  auto response = good(call.wait());
  CHECK(response.body.empty());
  CHECK(header(response, "content-type") == "text/event-stream");
  CHECK(got.text() == "first second");
  CHECK(becomes([&] { return client.stats().idle == 1; }));
}

TEST_CASE("a body of known length is passed on too", "[http_stream]") {
  reactor io;
  auto server = serve(io, echo);
  http_client client{io, {}};
  collected got;
  pending call;
  client.send(post(local(server->port()), std::string(100'000, 'x')), never, got.stream(),
              call.done());
  CHECK(good(call.wait()).body.empty());
  CHECK(got.text() == std::string(100'000, 'x'));
}

TEST_CASE("what is not a success is kept whole and not passed on", "[http_stream]") {
  reactor io;
  raw_server server{[](raw_server::peer& p, int) {
    p.read_request();
    p.send("HTTP/1.1 429 Too Many\r\ncontent-length: 4\r\n\r\nslow");
    p.drain();
  }};
  http_client client{io, {}};
  collected got;
  auto response = good(fetch_streamed(client, server.port(), got.stream()));
  CHECK(response.status == 429);
  CHECK(response.body == "slow");
  CHECK(got.text().empty());
}

TEST_CASE("a stream that falls silent ends by its own deadline", "[http_stream]") {
  reactor io;
  raw_server server{[](raw_server::peer& p, int) {
    p.read_request();
    p.send(std::string{chunked_head} + chunk("and then"));
    p.drain();
  }};
  http_client client{io, {}};
  collected got;
  auto f = failed(fetch_streamed(client, server.port(), got.stream(50ms)));
  CHECK(f.what.code == errc::timeout);
  CHECK(contains(f.what.detail, "nothing came for 50 ms while receiving the answer"));
  CHECK(got.text() == "and then");
  CHECK(client.stats().open == 0);
}

TEST_CASE("a stream that goes on slowly does not end by its silence", "[http_stream]") {
  reactor io;
  reactor clock;
  std::atomic<int> sent{0};
  raw_server server{[&](raw_server::peer& p, int) {
    p.read_request();
    p.send(chunked_head);
    // 12 pieces over more than the limit; each pause is well below it.
    for (; sent < 12; ++sent) {
      std::promise<void> due;
      clock.in(100ms, [&] { due.set_value(); });
      due.get_future().wait();
      p.send(chunk("x"));
    }
    p.send(last_chunk);
    p.drain();
  }};
  http_client client{io, {}};
  collected got;
  CHECK(good(fetch_streamed(client, server.port(), got.stream(1000ms))).status == 200);
  CHECK(got.text().size() == 12);
}

TEST_CASE("a stream that breaks off is unavailable, with what came before", "[http_stream]") {
  reactor io;
  raw_server server{[](raw_server::peer& p, int) {
    p.read_request();
    p.send(std::string{chunked_head} + chunk("half"));
  }};
  http_client client{io, {}};
  collected got;
  auto f = failed(fetch_streamed(client, server.port(), got.stream()));
  CHECK(f.what.code == errc::unavailable);
  CHECK(got.text() == "half");
}

TEST_CASE("a call ends as soon as it has enough, and its connection is used again",
          "[http_stream]") {
  reactor io;
  std::promise<void> answered;
  std::atomic<int> requests{0};
  raw_server server{[&](raw_server::peer& p, int) {
    while (!p.read_request().empty()) {
      p.send(std::string{chunked_head} + chunk("[DONE]"));
      if (++requests == 1)
        answered.get_future().wait();
      p.send(last_chunk);
    }
  }};
  http_client client{io, {}};
  collected first{"[DONE]"};
  CHECK(good(fetch_streamed(client, server.port(), first.stream())).status == 200);
  answered.set_value();  // the server had not even ended its answer
  REQUIRE(becomes([&] { return client.stats().idle == 1; }));
  collected second{"[DONE]"};
  CHECK(good(fetch_streamed(client, server.port(), second.stream())).status == 200);
  CHECK(server.accepted() == 1);
}

TEST_CASE("a server that does not end what nobody needs loses its connection", "[http_stream]") {
  reactor io;
  raw_server server{[](raw_server::peer& p, int) {
    p.read_request();
    p.send(std::string{chunked_head} + chunk("[DONE]"));
    p.drain();
  }};
  http_client client{io, {}};
  collected got{"[DONE]"};
  CHECK(good(fetch_streamed(client, server.port(), got.stream())).status == 200);
  CHECK(becomes([&] { return client.stats().open == 0; }));
}

TEST_CASE("a stream can be cancelled, and its client destroyed from within a piece",
          "[http_stream]") {
  reactor io;
  raw_server server{[](raw_server::peer& p, int) {
    p.read_request();
    p.send(std::string{chunked_head} + chunk("x"));
    p.drain();
  }};
  auto client = std::make_unique<http_client>(io, http_client_limits{});
  collected got;
  pending call;
  auto ticket = client->send(post(local(server.port())), soon(patience), got.stream(), call.done());
  REQUIRE(got.has("x"));
  client->cancel(ticket);
  CHECK(failed(call.wait()).what.code == errc::cancelled);
  CHECK(becomes([&] { return client->stats().open == 0; }));

  pending last;
  client->send(post(local(server.port())), soon(patience),
               {[&](std::string_view) {
                  client.reset();
                  return true;
                },
                millis{0}},
               last.done());
  CHECK(failed(last.wait()).what.code == errc::cancelled);
}

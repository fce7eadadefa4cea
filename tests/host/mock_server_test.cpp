#include "runtime/model/codec.hpp"
#include "runtime/model/reply_stream.hpp"
#include "tests/host/mock_fixture.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Waits until the server's figures are as `wanted` says.
bool becomes(mock_server& server, const std::function<bool(const mock_stats&)>& wanted) {
  for (auto until = steady_clock::now() + 30s; steady_clock::now() < until;
       std::this_thread::sleep_for(1ms))
    if (wanted(server.stats()))
      return true;
  return false;
}

}  // namespace

TEST_CASE("a mock server answers whole and in streams, and counts", "[mock_server]") {
  auto server = serve_mock(R"({"default":"some text of the script"})");
  reactor io;
  http_client client{io, {}};
  auto whole = send(client, chat_request(*server, chat_body())).get();
  REQUIRE(whole);
  auto reply = openai_codec().decode(whole->body);
  REQUIRE(reply);
  CHECK(reply->text == "some text of the script");
  auto streamed = send(client, chat_request(*server, chat_body(true))).get();
  REQUIRE(streamed);
  CHECK(streamed->body.ends_with("data: [DONE]\n\n"));
  auto refused = send(client, chat_request(*server, "{}")).get();
  REQUIRE(refused);
  CHECK(refused->status == 400);

  auto stats = server->stats();
  CHECK(stats.requests == 3);
  CHECK(stats.by_status == std::map<unsigned, std::uint64_t>{{200, 2}, {400, 1}});
  CHECK(stats.streams == 1);
  CHECK(stats.connections == 1);
  CHECK(stats.tokens.output == 2 * reply->usage.output);
  CHECK(stats.cpu > 0us);
  CHECK(stats.wall >= stats.cpu);
  CHECK(becomes(*server, [](auto& s) { return s.in_flight == 0; }));
}

TEST_CASE("a reply takes its latency, a stream its gaps", "[mock_server]") {
  auto server = serve_mock(R"({"default":"12345678","latency":{"median_ms":40},
    "stream":{"chunk_bytes":4,"gap":{"median_ms":20}}})");
  reactor io;
  http_client client{io, {}};
  auto begun = steady_clock::now();
  REQUIRE(send(client, chat_request(*server, chat_body())).get());
  CHECK(steady_clock::now() - begun >= 40ms);
  begun = steady_clock::now();
  REQUIRE(send(client, chat_request(*server, chat_body(true))).get());
  CHECK(steady_clock::now() - begun >= 120ms);  // 40, and four gaps between five events
}

TEST_CASE("many requests wait at once, each in its own time", "[mock_server]") {
  auto server = serve_mock(R"({"default":"x","latency":{"median_ms":100}})");
  reactor io;
  http_client client{io, {}};
  std::vector<std::future<answer>> calls;
  for (int i = 0; i < 200; ++i)
    calls.push_back(send(client, chat_request(*server, chat_body())));
  for (auto& call : calls)
    CHECK(call.get().value().status == 200);
  CHECK(server->stats().peak_in_flight > 20);
}

TEST_CASE("a server that ends takes its waiting requests and running streams along",
          "[mock_server]") {
  auto server = serve_mock(R"({"rules":[{"if_task_contains":"hhh","reply":{"latency_ms":60000}}],
    "default":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","stream":{"gap":{"median_ms":60000}}})");
  reactor io;
  http_client client{io, {}};
  auto waiting = send(client, chat_request(*server, chat_body(false, 3)));
  auto running = send(client, chat_request(*server, chat_body(true)));
  CHECK(becomes(*server, [](auto& s) { return s.in_flight == 2; }));
  server.reset();
  CHECK(!waiting.get());
  CHECK(!running.get());
}

TEST_CASE("clients that go away leave nothing in flight but what waits", "[mock_server]") {
  auto server = serve_mock(R"({"default":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "stream":{"gap":{"median_ms":50}}})");
  reactor io;
  {
    http_client client{io, {}};
    for (int i = 0; i < 20; ++i)
      client.send(chat_request(*server, chat_body(true)), never, [](auto&&) {});
    CHECK(becomes(*server, [](auto& s) { return s.requests == 20; }));
  }
  CHECK(becomes(*server, [](auto& s) { return s.in_flight == 0 && s.open == 0; }));
}

TEST_CASE("beyond so many waiting requests the next is refused", "[mock_server]") {
  auto server =
    serve_mock(R"({"default":"x","latency":{"median_ms":60000}})", {.max_in_flight = 2});
  reactor io;
  http_client client{io, {}};
  [[maybe_unused]] auto one = send(client, chat_request(*server, chat_body()));
  [[maybe_unused]] auto two = send(client, chat_request(*server, chat_body()));
  CHECK(becomes(*server, [](auto& s) { return s.in_flight == 2; }));
  CHECK(send(client, chat_request(*server, chat_body())).get().value().status == 503);
}

TEST_CASE("connections are reset, dropped and cut as the faults say", "[mock_server]") {
  reactor io;
  http_client client{io, {}};
  for (auto* kind : {"reset", "drop", "cut"}) {
    INFO(kind);
    auto server = serve_mock(R"({"default":"a text","faults":[{"at":0.5,"kind":")"
                             + std::string{kind} + "\"}]}");
    auto failed = send(client, chat_request(*server, chat_body())).get();
    REQUIRE(!failed);
    CHECK(failed.error().what.code == errc::unavailable);
  }
}

TEST_CASE("a port that is taken is an error", "[mock_server]") {
  auto server = serve_mock("{}");
  auto script = mock_script::parse("{}");
  auto second = mock_server::start(*script, {.port = server->port()});
  REQUIRE(!second);
  CHECK(second.error().code == errc::unavailable);
}

// Hidden: host_test "[.bench]" prints what an answer costs the mock server, and what that allows on
// one core. The server's own CPU counts: the client shares the machine.
#include "tests/host/mock_fixture.hpp"

#include <atomic>
#include <cstdio>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Keeps `wide` calls going until `total` have ended.
void load(http_client& client, const mock_server& server, const std::string& body, int total,
          int wide) {
  std::atomic<int> left{total};
  std::atomic<int> open{wide};
  std::promise<void> ended;
  auto request = chat_request(server, body);
  std::function<void()> next = [&] {
    if (left.fetch_sub(1) <= 0) {
      if (open.fetch_sub(1) == 1)
        ended.set_value();
      return;
    }
    client.send(request, never, [&](const answer&) { next(); });
  };
  for (int i = 0; i < wide; ++i)
    next();
  ended.get_future().wait();
}

void measure(std::string_view what, std::string_view script, const std::string& body, int calls) {
  auto server = serve_mock(script);
  reactor io;
  http_client client{io, {}};
  constexpr int wide = 64;
  load(client, *server, body, calls / 10, wide);
  auto before = server->stats();
  load(client, *server, body, calls, wide);
  auto now = server->stats();
  auto cpu = static_cast<double>((now.cpu - before.cpu).count()) / calls;
  auto wall = static_cast<double>((now.wall - before.wall).count()) / 1e6;
  std::printf("%-40.*s %7.1f us CPU an answer: %8.0f/s on one core; %8.0f/s seen here, "
              "saturation %.2f\n",
              static_cast<int>(what.size()), what.data(), cpu, 1e6 / cpu, calls / wall,
              cpu * calls / (wall * 1e6));
}

}  // namespace

TEST_CASE("what an answer costs the mock server", "[.bench]") {
  constexpr auto brief = R"({"default":"a short reply"})";
  auto long_reply = R"({"default":")" + std::string(2000, 'y') + "\"}";
  measure("small plain request", brief, chat_body(), 40'000);
  measure("plain, 2 KB request", brief, chat_body(false, 2000), 20'000);
  measure("plain, 2 KB request, 2 KB reply", long_reply, chat_body(false, 2000), 20'000);
  measure("plain, 200 KB request", brief, chat_body(false, 200'000), 2000);
  measure("stream, 2 KB reply, 100 events at once", long_reply, chat_body(true), 5000);
  measure(
    "plain with limits and faults",
    R"({"default":"x","limits":{"requests_per_minute":100000000,"tokens_per_minute":100000000},
              "faults":[{"kind":"server","rate":0.01}]})",
    chat_body(), 20'000);
}

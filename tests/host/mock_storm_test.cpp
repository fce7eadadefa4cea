// The real client against the mock server's worst: sockets, time and threads are the machine's.

#include "actors/budget_ledger.hpp"
#include "actors/caf_glue.hpp"
#include "actors/model_client.hpp"
#include "tests/host/mock_fixture.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include <cstdio>
#include <map>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr auto patience = 60s;
const std::string reply_text(150, 'r');

/// Bursts of 429s, and every way in which a server or the net fails in passing. After bursts longer
/// or more frequent than these the client would rightly take minutes to find its rate again.
std::string stormy_script() {
  std::string faults =
    R"({"kind":"rate_limited","every":150,"burst":8,"retry_after_ms":20},
    {"kind":"slow","rate":0.04,"pause_ms":5},{"kind":"stall","rate":0.02,"pause_ms":1000})";
  for (auto* kind : {"overloaded", "server", "gateway", "reset", "drop", "cut", "truncated",
                     "wrong_type", "error_event"})
    faults += R"(,{"kind":")" + std::string{kind} + R"(","rate":0.04,"retry_after_ms":5})";
  return R"({"default":")" + reply_text
         + R"(","latency":{"median_ms":2,"sigma":1,"cap_ms":20},)"
           R"("stream":{"chunk_bytes":10,"gap":{"median_ms":1}},"faults":[)"
         + faults + "]}";
}

/// What came of all calls. Of the asking actor alone until `over`.
struct tally {
  static constexpr std::uint64_t calls = 300;
  static constexpr std::uint64_t wide = 48;

  std::uint64_t begun = 0;
  std::uint64_t answered = 0;
  std::uint64_t garbled = 0;  ///< replies, or what viewers saw of them, that are not the script's
  std::map<std::string, std::uint64_t> failures;
  std::map<run_id, std::string> shown;
  std::promise<void> over;
};

struct storm {
  storm() {
    glue::init_types();
    glue::configure(config, 2);
    system = std::make_unique<caf::actor_system>(config);
    http_endpoint_options where{.base = *parse_url(server->url() + "/v1"), .silence = 300ms};
    model_client_options o;
    o.attempt_timeout = 600ms;
    o.retry = {.max_attempts = 1'000, .base = 2ms, .cap = 20ms};
    o.breaker.failures = 0;
    client =
      spawn_model_client(*system, make_http_endpoint(http, make_codec({}), where), o, stats, io);
  }

  ~storm() {
    glue::post(client, stop{});
    client = nullptr;
    system.reset();
  }
  storm(const storm&) = delete;
  storm& operator=(const storm&) = delete;

  void ask(caf::event_based_actor* self, const std::shared_ptr<tally>& t) {
    if (t->begun == tally::calls)
      return;
    run_id run{++t->begun};
    transcript said{openai_codec().encoder()};
    said.append({.from = role::user, .content = "task " + std::to_string(t->begun)});
    model_ask m;
    m.request.run = run;
    m.request.settings = settings;
    m.request.messages = said.view();
    m.payer = std::make_shared<budget_account>(budget, budget_limits{}, "the run");
    if (t->begun % 2 == 0)
      m.viewer = caf::actor_cast<caf::actor>(self);
    self->request(client, caf::infinite, std::move(m)).then([=, this](const model_answer& a) {
      take(run, a, *t);
      ask(self, t);
      if (t->answered == tally::calls)
        t->over.set_value();
    });
    if (t->begun % 25 == 0)
      io.in(8ms, [to = client, run] { glue::post(to, model_cancel{run}); });
  }

  static void take(run_id run, const model_answer& a, tally& t) {
    ++t.answered;
    if (!a.outcome) {
      ++t.failures[std::string{to_string(a.outcome.error().kind)}];
      return;
    }
    auto seen = t.shown.find(run);
    t.garbled += a.outcome->text != reply_text ? 1 : 0;
    t.garbled += seen != t.shown.end() && seen->second != reply_text ? 1 : 0;
  }

  /// Blocks until all calls are answered.
  std::shared_ptr<tally> blow() {
    auto t = std::make_shared<tally>();
    auto over = t->over.get_future();
    system->spawn([this, t](caf::event_based_actor* self) -> caf::behavior {
      for (std::uint64_t i = 0; i < tally::wide; ++i)
        ask(self, t);
      return {[t](const model_seen& x) {
                for (auto& p : x.pieces)
                  if (p.what == model_delta::kind::restart)
                    t->shown[x.run].clear();
                  else
                    t->shown[x.run] += p.text;
              },
              [](const stop&) {}};
    });
    REQUIRE(over.wait_for(patience) == std::future_status::ready);
    return t;
  }

  std::unique_ptr<mock_server> server = serve_mock(stormy_script(), {.service = {.seed = 5}});
  reactor io;
  http_client http{io, {}};
  std::shared_ptr<model_client_stats> stats = std::make_shared<model_client_stats>();
  std::shared_ptr<model_settings> settings = [] {
    auto s = std::make_shared<model_settings>();
    s->model = "m";
    return s;
  }();
  std::shared_ptr<budget_account> budget = std::make_shared<budget_account>(
    std::make_shared<budget_ledger>(), budget_limits{}, "the batch");
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  caf::actor client;
};

bool becomes(const std::function<bool()>& condition) {
  for (auto until = steady_clock::now() + patience; steady_clock::now() < until;
       std::this_thread::sleep_for(1ms))
    if (condition())
      return true;
  return condition();
}

/// Asks and never reads.
class silent_client {
public:
  explicit silent_client(const mock_server& server, std::string_view body)
    : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    auto request = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: "
                   + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
    REQUIRE(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL)
            == static_cast<ssize_t>(request.size()));
  }
  ~silent_client() { ::close(fd_); }
  silent_client(const silent_client&) = delete;
  silent_client& operator=(const silent_client&) = delete;

private:
  int fd_;
};

}  // namespace

TEST_CASE("over real sockets, storms, resets and cut, slow or stalled streams lose no call",
          "[mock_server]") {
  storm s;
  auto t = s.blow();
  std::printf("storm: %llu calls, %llu tries\n", static_cast<unsigned long long>(t->answered),
              static_cast<unsigned long long>(s.stats->attempts.load()));
  CHECK(t->answered == tally::calls);
  CHECK(t->garbled == 0);
  for (auto& [kind, n] : t->failures)
    CHECK(kind == "cancelled");
  CHECK(t->failures["cancelled"] > 0);
  for (auto kind :
       {fault_kind::rate_limited, fault_kind::overloaded, fault_kind::server, fault_kind::gateway,
        fault_kind::reset, fault_kind::drop, fault_kind::cut, fault_kind::truncated,
        fault_kind::wrong_type, fault_kind::slow, fault_kind::stall, fault_kind::error_event})
    CHECK(s.server->stats().faults[static_cast<std::size_t>(kind)] > 0);

  // Nothing stays: no try, no reservation, no connection that is not idle, and then none at all.
  CHECK(s.stats->in_flight == 0);
  CHECK(s.http.stats().requests == s.stats->attempts);
  CHECK(s.budget->spent().calls == s.stats->attempts);
  CHECK(becomes([&] { return s.http.stats().open == s.http.stats().idle; }));
  CHECK(becomes([&] { return s.budget.use_count() == 1; }));
  CHECK(becomes([&] { return s.server->stats().in_flight == 0; }));
}

TEST_CASE("clients that stop reading cost a bounded time and nobody else", "[mock_server]") {
  // More than a socket's two buffers hold, whole and as a stream.
  auto server = serve_mock(R"({"default":")" + std::string(12u << 20, 'x')
                             + R"(","rules":[{"if_task_contains":"hhh","reply":"short"}],)"
                               R"("stream":{"chunk_bytes":1000000}})",
                           {.max_in_flight = 4, .stuck_after = 100ms});
  reactor io;
  http_client client{io, {}};
  std::vector<std::unique_ptr<silent_client>> silent;
  for (int i = 0; i < 3; ++i)
    silent.push_back(std::make_unique<silent_client>(*server, chat_body(i % 2 == 0)));
  CHECK(send(client, chat_request(*server, chat_body(false, 3))).get().value().status == 200);
  CHECK(becomes([&] { return server->stats().in_flight == 0 && server->stats().open == 1; }));
  CHECK(send(client, chat_request(*server, chat_body(true, 3))).get().value().status == 200);
}

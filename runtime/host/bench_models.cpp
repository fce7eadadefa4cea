#include "runtime/host/bench_models.hpp"

#include "actors/caf_glue.hpp"
#include "actors/model_client.hpp"
#include "runtime/host/bench_parts.hpp"
#include "runtime/host/bench_server.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/stateful_actor.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <thread>

#include <sys/resource.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using namespace measure;

constexpr std::size_t held_calls = 10'000;
constexpr std::size_t calls_beside = 1'000;
constexpr int probes = 4'000;

/// Sends at once what it is given: a bench that holds its calls has no answers to learn from how
/// many may be open.
class eager_endpoint final : public endpoint {
public:
  explicit eager_endpoint(std::shared_ptr<endpoint> to) : to_{std::move(to)} {}

  ticket ask(const model_request& request, time_point deadline, seen_fn seen,
             done_fn done) override {
    return to_->ask(request, deadline, std::move(seen), std::move(done));
  }
  void cancel(ticket which) override { to_->cancel(which); }
  [[nodiscard]] message_encoder encoder() const override { return to_->encoder(); }
  [[nodiscard]] bool in_process() const override { return true; }

private:
  std::shared_ptr<endpoint> to_;
};

/// A conversation of about that many bytes.
transcript conversation(std::size_t bytes) {
  transcript t{openai_codec().encoder()};
  t.append({.from = role::system, .content = std::string(bytes / 2, 's')});
  t.append({.from = role::user, .content = std::string(bytes / 2, 'u')});
  return t;
}

struct asks {
  std::function<model_request(int)> make;
  int total = 0;
  int wide = 1;
  std::function<void(const model_answer&)> answered{};
  std::promise<int>* failures = nullptr;  ///< told at the end: how many there were
};

/// Keeps `wide` calls going until `total` have been answered.
class asker_state {
public:
  asker_state(caf::event_based_actor* self, caf::actor client, asks what)
    : self_{self}, client_{std::move(client)}, what_{std::move(what)} {}

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    for (int i = 0; i < std::min(what_.wide, what_.total); ++i)
      next();
    return {[](const stop&) {}};
  }

  static inline const char* name = "asker";

private:
  void next() {
    ++open_;
    self_->request(client_, caf::infinite, model_ask{what_.make(begun_++)})
      .then([this](const model_answer& a) { on_answer(a); },
            [this](const caf::error&) { on_answer({tl::unexpected(model_failure{})}); });
  }

  void on_answer(const model_answer& a) {
    --open_;
    failed_ += !a.outcome;
    if (what_.answered)
      what_.answered(a);
    if (begun_ < what_.total)
      next();
    else if (open_ == 0)
      end();
  }

  void end() {
    what_.failures->set_value(failed_);
    self_->quit();
  }

  caf::event_based_actor* self_;
  caf::actor client_;
  asks what_;
  int begun_ = 0;
  int open_ = 0;
  int failed_ = 0;
};

/// A model client alone, with what it needs: no agents, no journal.
class client_bench {
public:
  client_bench(const std::vector<std::string>& bases, std::size_t most, bool eager)
    : http_{io_, {.max_connections = most + 10, .max_idle_per_peer = most + 10}} {
    glue::init_types();
    glue::configure(config_, std::max(1u, std::thread::hardware_concurrency()));
    system_ = std::make_unique<caf::actor_system>(config_);
    std::vector<model_route> routes;
    for (const auto& base : bases) {
      auto where =
        make_http_endpoint(http_, make_codec({}), {.base = *parse_url(base), .key = "k"});
      routes.push_back({eager ? std::make_shared<eager_endpoint>(std::move(where)) : where});
    }
    model_client_options o;
    o.max_in_flight = most;
    client_ = spawn_model_client(*system_, std::move(routes), o,
                                 std::make_shared<model_client_stats>(), io_);
  }

  ~client_bench() {
    glue::post(client_, stop{});
    client_ = nullptr;
    system_.reset();  // waits for the actors
  }
  client_bench(const client_bench&) = delete;
  client_bench& operator=(const client_bench&) = delete;

  /// Blocks until all are answered.
  /// Errors  internal: some failed.
  result<void> run(asks what) {
    std::promise<int> over;
    what.failures = &over;
    auto total = what.total;
    system_->spawn<caf::stateful_actor<asker_state>>(client_, std::move(what));
    auto failed = over.get_future().get();
    return failed == 0 ? result<void>{}
                       : fail(errc::internal, fmt::format("{} of {} calls failed", failed, total));
  }

  /// Sends calls that nobody answers, a few at a time: a listener's queue takes no more at once,
  /// and the kernel would wait for seconds before it knocks again.
  void hold(const bench_servers& servers, const std::function<model_request(int)>& make,
            int total) {
    constexpr int at_once = 100;
    auto before = servers.held();
    for (int i = 0; i < total; ++i) {
      caf::anon_send(client_, model_ask{make(i)});
      if (i % at_once == at_once - 1 || i == total - 1)
        while (servers.held() - before <= static_cast<std::uint64_t>(i))
          std::this_thread::sleep_for(1ms);
    }
  }

private:
  reactor io_;
  http_client http_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::actor client_;
};

/// Calls of one run's next turn each: what was said before is encoded already.
std::function<model_request(int)> turns_of(std::size_t bytes) {
  auto settings = std::make_shared<model_settings>();
  settings->model = "bench";
  return [settings, past = conversation(bytes)](int i) {
    auto t = past;
    t.append({.from = role::user, .content = "Observation: " + std::to_string(i)});
    model_request r;
    r.settings = settings;
    r.messages = t.view();
    r.run = run_id{static_cast<std::uint64_t>(i) + 1};
    return r;
  };
}

struct call_cost {
  double client_us = 0;
  double server_us = 0;
};

result<call_cost> cost_of(bench_servers& servers, std::size_t bytes, int calls) {
  client_bench b{{servers.mock_url()}, 64, false};
  if (auto warm = b.run({turns_of(bytes), calls / 10, 64}); !warm)
    return fail(warm.error());
  auto ours = process_cpu();
  auto theirs = servers.cpu();
  if (auto done = b.run({turns_of(bytes), calls, 64}); !done)
    return fail(done.error());
  auto per = [&](micros all) { return static_cast<double>(all.count()) / calls; };
  return call_cost{per(process_cpu() - ours), per(servers.cpu() - theirs)};
}

std::uint64_t memory_of_held_calls(bench_servers& servers) {
  std::vector<std::string> bases;
  for (std::size_t i = 0; i < bench_servers::holders; ++i)
    bases.push_back(servers.holder_url(i));
  auto before = resident_bytes();
  client_bench b{bases, held_calls, true};
  auto own_history = [](int i) { return turns_of(2'000)(i); };
  b.hold(servers, own_history, static_cast<int>(held_calls));
  auto now = resident_bytes();
  return now - std::min(now, before);
}

/// Microseconds from the actor's ask to the server's handler, which is later than the first byte.
result<std::vector<double>> ways_out(bench_servers& servers) {
  client_bench b{{servers.holder_url(0)}, calls_beside + 1, true};
  b.hold(servers, turns_of(2'000), static_cast<int>(calls_beside));
  auto settings = std::make_shared<model_settings>();
  settings->model = "bench";
  std::vector<double> out;
  asks what;
  what.total = probes;
  what.make = [settings, past = conversation(2'000)](int i) {
    auto t = past;
    auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch());
    t.append({.from = role::user, .content = "asked:" + std::to_string(now.count())});
    model_request r;
    r.settings = settings;
    r.messages = t.view();
    r.run = run_id{1'000'000 + static_cast<std::uint64_t>(i)};
    return r;
  };
  what.answered = [&](const model_answer& a) {
    std::int64_t taken = 0;
    if (a.outcome)
      std::from_chars(a.outcome->text.data(), a.outcome->text.data() + a.outcome->text.size(),
                      taken);
    out.push_back(static_cast<double>(taken) / 1e3);
  };
  if (auto done = b.run(std::move(what)); !done)
    return fail(done.error());
  return out;
}

void allow_many_descriptors() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

result<std::string> bench_models() {
  allow_many_descriptors();
  auto servers = bench_servers::start();
  if (!servers)
    return fail(servers.error());
  auto memory = memory_of_held_calls(**servers);  // first: before anything has grown
  auto small = cost_of(**servers, 2'000, 20'000);
  auto large = small ? cost_of(**servers, 200'000, 2'000) : fail(small.error());
  auto taken = large ? ways_out(**servers) : fail(large.error());
  if (!taken)
    return fail(taken.error());
  return line("client CPU per call, 2 KB requests, keep-alive", us(small->client_us), "<= 60 us")
         + line("client CPU per call, 200 KB requests", us(large->client_us),
                fmt::format("<= {}", us(3 * small->client_us)))
         + line("10 000 calls in flight to 4 endpoints",
                fmt::format("{:.0f} MB", static_cast<double>(memory) / 1e6), "<= 400 MB")
         + line("ask to the server's handler, 1000 in flight, p50", us(quantile(*taken, 0.5)))
         + line("the same, p99", us(quantile(*taken, 0.99)), "<= 1000 us")
         + line("mock server's own CPU an answer, 2 KB", us(small->server_us))
         + line("so one core of it answers at most",
                fmt::format("{:.0f}/s", 1e6 / std::max(small->server_us, 1.0)))
         + line("mock server's own CPU an answer, 200 KB", us(large->server_us));
}

}  // namespace troupe

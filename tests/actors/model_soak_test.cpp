// An hour of the model client under load and faults, in virtual time.

#include "actors/budget_ledger.hpp"
#include "actors/model_client.hpp"
#include "runtime/core/random.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <map>
#include <unordered_map>

#include <malloc.h>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A server with bad minutes. Every try ends exactly once: answered, failed, cut off at its
/// deadline, or cancelled.
class moody_endpoint final : public endpoint {
public:
  moody_endpoint(timers& clock, std::uint64_t seed) : clock_{clock}, random_{seed} {}

  ticket ask(const model_request& request, time_point deadline, seen_fn, done_fn done) override {
    ++asked;
    auto id = ++last_;
    auto [outcome, takes] = fate(request);
    if (after(clock_.now(), takes) >= deadline) {
      outcome = failure(failure_class::timeout);
      takes = std::chrono::duration_cast<millis>(deadline - clock_.now());
    }
    auto timer = clock_.in(takes, [this, id] { end(id); });
    open.emplace(id, one_try{std::move(outcome), std::move(done), timer});
    return id;
  }

  void cancel(ticket which) override {
    auto node = open.extract(which);
    if (node.empty())
      return;
    clock_.cancel(node.mapped().timer);
    node.mapped().done(failure(failure_class::cancelled));
  }

  message_encoder encoder() const override { return openai_codec().encoder(); }

  std::uint64_t asked = 0;
  std::map<failure_class, std::uint64_t> faults;
  struct one_try {
    model_outcome outcome;
    done_fn done;
    timer_id timer;
  };
  std::unordered_map<ticket, one_try> open;

private:
  void end(ticket id) {
    auto node = open.extract(id);
    node.mapped().done(std::move(node.mapped().outcome));
  }

  model_outcome failure(failure_class kind, std::optional<millis> wait = {}) {
    ++faults[kind];
    return tl::unexpected(model_failure{kind, "no", wait, 1});
  }

  /// Of each ten minutes one is a storm of 429s, one of 5xx, one is dead, one stalls; the others
  /// have a little of everything.
  std::pair<model_outcome, millis> fate(const model_request& request) {
    auto minute = std::chrono::duration_cast<std::chrono::minutes>(clock_.now().time_since_epoch());
    auto luck = random_.uniform();
    auto brief = millis{5 + static_cast<int>(random_.uniform() * 50)};
    switch (minute.count() % 10) {
    case 2:
      if (luck < 0.7)
        return {failure(failure_class::rate_limited, millis{1'500}), brief};
      break;
    case 4:
      if (luck < 0.8)
        return {failure(luck < 0.4 ? failure_class::server : failure_class::overloaded), brief};
      break;
    case 6:
      return {failure(failure_class::connect), brief};
    case 8:
      if (luck < 0.5)
        return {failure(failure_class::timeout), millis{24h}};
      break;
    default:
      if (luck < 0.01)
        return {failure(failure_class::connect), brief};
      if (luck < 0.02)
        return {failure(failure_class::bad_reply), brief};
    }
    model_reply r;
    r.text = "x";
    r.usage = {.input = request.messages.size / 4, .output = 50};
    return {std::move(r), millis{200 + static_cast<int>(random_.uniform() * 1'000)}};
  }

  timers& clock_;
  rng random_;
  ticket last_ = 0;
};

struct soak_fixture : test::actor_fixture {
  soak_fixture() {
    std::vector<model_route> routes;
    for (std::uint64_t i = 0; i < 3; ++i) {
      servers.push_back(std::make_shared<moody_endpoint>(clock, 7 + i));
      routes.push_back({.where = servers.back(), .name = "s" + std::to_string(i)});
    }
    model_client_options o;
    o.attempt_timeout = 30s;
    client = keep(spawn_model_client(sys, std::move(routes), o, stats, clock));
  }

  /// Asks again and again until the load is over; now and then it gives up while it waits.
  void caller(caf::event_based_actor* self, std::uint64_t run) {
    if (over)
      return;
    ++asked;
    model_ask m;
    m.request.run = run_id{run};
    m.request.settings = settings;
    m.request.messages.size = 2'000;
    if (run % 4 == 0)
      m.request.deadline = after(clock.now(), 90s);
    m.from = {run % 3, 1.0 + static_cast<double>(run % 3)};
    m.payer = std::make_shared<budget_account>(budget, budget_limits{}, "the run");
    self->request(client, caf::infinite, std::move(m))
      .then([this, self, run](const model_answer& x) {
        ++answers[x.outcome ? "reply" : std::string{to_string(x.outcome.error().kind)}];
        caller(self, run);
      });
    if (random.uniform() < 0.02)
      clock.in(millis{static_cast<int>(random.uniform() * 2'000)},
               [this, run] { glue::post(client, model_cancel{run_id{run}}); });
  }

  /// What is open: tries, calls, accounts, timers.
  [[nodiscard]] std::size_t open() {
    std::size_t n = stats->in_flight + static_cast<std::size_t>(budget.use_count() - 1);
    for (auto& s : servers)
      n += s->open.size();
    return n + (clock.next() ? 1 : 0);
  }

  std::vector<std::shared_ptr<moody_endpoint>> servers;
  std::shared_ptr<model_client_stats> stats = std::make_shared<model_client_stats>();
  std::shared_ptr<model_settings> settings = std::make_shared<model_settings>();
  std::shared_ptr<budget_account> budget = std::make_shared<budget_account>(
    std::make_shared<budget_ledger>(), budget_limits{}, "the batch");
  caf::actor client;
  rng random{5};
  bool over = false;
  std::uint64_t asked = 0;
  std::map<std::string, std::uint64_t> answers;
};

/// Bytes that are in use; 0 under a sanitizer, whose allocator does not tell.
double heap_mb() {
  return static_cast<double>(::mallinfo2().uordblks) / 1e6;
}

}  // namespace

TEST_CASE("an hour of storms, resets, stalls and outages loses no call and leaks nothing",
          "[model_client]") {
  soak_fixture fx;
  constexpr std::uint64_t callers = 16;
  for (std::uint64_t run = 1; run <= callers; ++run)
    fx.keep(fx.sys.spawn([&fx, run](caf::event_based_actor* self) { fx.caller(self, run); }));
  std::vector<double> heap;  // at the same minute of each ten: the load is the same
  for (int ten = 0; ten < 6; ++ten) {
    fx.advance(10min);
    heap.push_back(heap_mb());
  }
  fx.over = true;
  fx.advance(10min);

  std::uint64_t answered = 0, tries = 0;
  for (auto& [kind, n] : fx.answers) {
    std::printf("soak: %s %llu\n", kind.c_str(), static_cast<unsigned long long>(n));
    answered += n;
  }
  for (auto& s : fx.servers)
    tries += s->asked;
  std::printf("soak: %llu calls, %llu tries, heap %.1f, %.1f, ..., %.1f MB\n",
              static_cast<unsigned long long>(fx.asked), static_cast<unsigned long long>(tries),
              heap[0], heap[1], heap.back());
  CHECK(fx.asked > 30'000);
  CHECK(answered == fx.asked);
  CHECK(fx.answers["reply"] > answered * 9 / 10);
  for (auto kind : {failure_class::connect, failure_class::rate_limited, failure_class::server,
                    failure_class::overloaded, failure_class::timeout, failure_class::bad_reply})
    CHECK(fx.servers[0]->faults[kind] > 0);

  CHECK(fx.open() == 0);
  CHECK(fx.stats->attempts == tries);
  CHECK(fx.budget->spent().calls == tries);
  CHECK(heap.back() - heap[1] < 0.5);
}

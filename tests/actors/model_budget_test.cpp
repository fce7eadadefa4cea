// Budgets as the model client keeps them.

#include "actors/model_client.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// Each reply takes a second and this much.
class costly_endpoint final : public endpoint {
public:
  explicit costly_endpoint(timers& clock) : clock_{clock} {}

  ticket ask(const model_request&, time_point, seen_fn, done_fn done) override {
    ++asked;
    model_reply r;
    r.text = "x";
    r.usage.input = 100;
    r.usage.output = 50;
    timers_.push_back(clock_.in(1s, [r, done = std::move(done)] { done(r); }));
    return timers_.size();
  }

  void cancel(ticket which) override { clock_.cancel(timers_[which - 1]); }
  message_encoder encoder() const override { return openai_codec().encoder(); }

  std::size_t asked = 0;

private:
  timers& clock_;
  std::vector<timer_id> timers_;
};

struct budget_fixture : test::actor_fixture {
  explicit budget_fixture(budget_limits limits, std::uint32_t max_output = 50)
    : batch{ledger->add(0, limits, "the batch")} {
    settings->max_output_tokens = max_output;
    std::vector<model_route> routes;
    routes.push_back(
      {.where = server,
       .cost = price{
         .input = 10'000, .output = 20'000, .cached_input = {}, .cache_write = {}, .as_of = ""}});
    model_client_options options;
    options.ledger = ledger;
    client = keep(spawn_model_client(sys, std::move(routes), options,
                                     std::make_shared<model_client_stats>(), clock));
  }

  auto call(std::uint64_t run) {
    model_ask m;
    m.request.run = run_id{run};
    m.request.settings = settings;
    m.request.messages.size = 300;
    m.budget = batch;
    auto answer = ask<model_answer>(client, m);
    deliver();
    return answer;
  }

  /// Answers and failures of so many calls at once, after a long time.
  std::pair<int, int> calls(std::uint64_t n) {
    std::vector<std::shared_ptr<std::optional<result<model_answer>>>> all;
    for (std::uint64_t i = 1; i <= n; ++i)
      all.push_back(call(i));
    advance(10min);
    std::pair<int, int> got;
    for (auto& a : all) {
      REQUIRE(a->has_value());
      auto& o = (**a)->outcome;
      ++(o ? got.first : got.second);
      if (!o) {
        CHECK(o.error().kind == failure_class::budget);
        CHECK(o.error().detail.find("the batch's budget is spent: ") == 0);
      }
    }
    return got;
  }

  std::shared_ptr<budget_ledger> ledger = std::make_shared<budget_ledger>();
  budget_id batch;
  std::shared_ptr<costly_endpoint> server = std::make_shared<costly_endpoint>(clock);
  std::shared_ptr<model_settings> settings = std::make_shared<model_settings>();
  caf::actor client;
};

}  // namespace

TEST_CASE("no more calls are made than the budget has", "[model_client]") {
  budget_fixture fx{{.calls = 7}};
  CHECK(fx.calls(100) == std::pair{7, 93});
  CHECK(fx.server->asked == 7);
}

TEST_CASE("tokens are exceeded by no more than one reply, however many calls wait",
          "[model_client]") {
  budget_fixture fx{{.tokens = 1'000}};
  auto [answered, refused] = fx.calls(1'000);
  CHECK(answered == 7);  // six replies take 900, the seventh is the one beyond
  CHECK(refused == 993);
  CHECK(fx.ledger->spent(fx.batch).tokens.total() == 1'050);
}

TEST_CASE("money is counted by the route's price", "[model_client]") {
  budget_fixture fx{{.money = 10}};
  CHECK(fx.calls(20).first == 5);  // 100 * 0.01 + 50 * 0.02 = 2 each
  CHECK(std::abs(fx.ledger->spent(fx.batch).money - 10) < 1e-9);
}

TEST_CASE("a call that is cancelled pays for its request, and frees what it had reserved",
          "[model_client]") {
  budget_fixture fx{{.tokens = 10'000}};
  auto a = fx.call(1);
  glue::post(fx.client, model_cancel{run_id{1}});
  fx.deliver();
  auto spent = fx.ledger->spent(fx.batch);
  CHECK(spent.calls == 1);
  CHECK(spent.tokens.input > 0);
  CHECK(spent.tokens.output == 0);
  CHECK(fx.calls(20).first == 20);
}

TEST_CASE("an ending client leaves nothing reserved behind", "[model_client]") {
  budget_fixture fx{{.calls = 2}};
  auto a = fx.call(1), b = fx.call(2);
  glue::post(fx.client, stop{});
  fx.deliver();
  CHECK(fx.ledger->spent(fx.batch).calls == 2);
  CHECK(fx.ledger->reserve(fx.batch, {}) == budget_answer::spent);
}

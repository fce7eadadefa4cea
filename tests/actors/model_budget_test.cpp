// Budgets as the model client keeps them.

#include "actors/budget_ledger.hpp"
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
    : batch{
      std::make_shared<budget_account>(std::make_shared<budget_ledger>(), limits, "the batch")} {
    settings->max_output_tokens = max_output;
    std::vector<model_route> routes;
    routes.push_back(
      {.where = server,
       .cost = price{
         .input = 10'000, .output = 20'000, .cached_input = {}, .cache_write = {}, .as_of = ""}});
    client = keep(spawn_model_client(sys, std::move(routes), {},
                                     std::make_shared<model_client_stats>(), clock));
  }

  using answer = std::shared_ptr<std::optional<result<model_answer>>>;

  answer call(std::uint64_t run) { return call(run, batch); }

  answer call(std::uint64_t run, std::shared_ptr<budget_account> payer) {
    model_ask m;
    m.request.run = run_id{run};
    m.request.settings = settings;
    m.request.messages.size = 300;
    m.payer = std::move(payer);
    auto got = ask<model_answer>(client, m);
    deliver();
    return got;
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

  std::shared_ptr<budget_account> batch;
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
  CHECK(fx.batch->spent().tokens.total() == 1'050);
}

TEST_CASE("money is counted by the route's price", "[model_client]") {
  budget_fixture fx{{.money = 10}};
  CHECK(fx.calls(20).first == 5);  // 100 * 0.01 + 50 * 0.02 = 2 each
  CHECK(std::abs(fx.batch->spent().money - 10) < 1e-9);
}

TEST_CASE("a call that is cancelled pays for its request, and frees what it had reserved",
          "[model_client]") {
  budget_fixture fx{{.tokens = 10'000}};
  auto a = fx.call(1);
  glue::post(fx.client, model_cancel{run_id{1}});
  fx.deliver();
  auto spent = fx.batch->spent();
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
  CHECK(fx.batch->spent().calls == 2);
  CHECK(fx.batch->reserve({}) == budget_answer::spent);
}

TEST_CASE("a run whose own budget is spent ends, and its siblings go on", "[model_client]") {
  budget_fixture fx{{.calls = 100}};
  auto account = [&](budget_limits limits, std::string name) {
    return std::make_shared<budget_account>(fx.batch, limits, std::move(name));
  };
  auto small = account({.calls = 2}, "the run");
  auto sibling = account({}, "its sibling");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    auto mine = fx.call(2 * i, small);
    auto other = fx.call(2 * i + 1, sibling);
    fx.advance(10min);
    REQUIRE(mine->has_value());
    REQUIRE(other->has_value());
    auto& o = (**mine)->outcome;
    CHECK(o.has_value() == (i <= 2));
    CHECK((**other)->outcome);
    if (!o) {
      CHECK(o.error().kind == failure_class::budget);
      CHECK(o.error().detail == "the run's budget is spent: 2 of 2 calls");
    }
  }
  CHECK(small->spent().calls == 2);
  CHECK(sibling->spent().calls == 3);
  CHECK(fx.batch->spent().calls == 5);
}

TEST_CASE("a child that is asked by a run pays out of the run's budget", "[model_client]") {
  budget_fixture fx{{}};
  auto run = std::make_shared<budget_account>(fx.batch, budget_limits{.calls = 3}, "the run");
  auto child = std::make_shared<budget_account>(run, budget_limits{.calls = 2}, "the child");
  std::vector<std::string> ends;
  std::uint64_t id = 0;
  for (auto& payer : {child, child, child, run, run, child}) {
    auto answer = fx.call(++id, payer);
    fx.advance(10min);
    auto& o = (**answer)->outcome;
    ends.push_back(o ? "answered" : o.error().detail);
  }
  CHECK(ends
        == std::vector<std::string>{
          "answered", "answered", "the child's budget is spent: 2 of 2 calls", "answered",
          "the run's budget is spent: 3 of 3 calls", "the child's budget is spent: 2 of 2 calls"});
}

TEST_CASE("an account lives as long as a call that it pays for", "[model_client]") {
  budget_fixture fx{{.calls = 100}};
  auto run = std::make_shared<budget_account>(fx.batch, budget_limits{.calls = 5}, "the run");
  std::weak_ptr<budget_account> seen = run;
  auto answer = fx.call(1, std::move(run));
  CHECK_FALSE(seen.expired());
  fx.advance(10min);
  CHECK((**answer)->outcome);
  CHECK(seen.expired());
  CHECK(fx.batch->spent().calls == 1);
}

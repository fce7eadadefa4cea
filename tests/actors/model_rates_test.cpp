// The model client against endpoints that refuse, fail and die, in virtual time.

#include "actors/model_client.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/limited_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <map>

using namespace troupe;
using namespace std::chrono_literals;
using counting = test::server_limits::counting;

namespace {

/// Answers after a latency, of the timers' clock, as `verdict` says at the time of the asking.
class timed_endpoint final : public endpoint {
public:
  using verdict_fn = std::function<model_outcome(const model_request&)>;

  timed_endpoint(timers& clock, verdict_fn verdict, millis latency = 1s)
    : clock_{clock}, verdict_{std::move(verdict)}, latency_{latency} {}

  ticket ask(const model_request& request, time_point, seen_fn, done_fn done) override {
    ++asked;
    models.push_back(request.settings ? request.settings->model : "");
    auto outcome = verdict_(request);
    auto takes = outcome ? latency_ : millis{50};
    clock_.in(takes, [outcome = std::move(outcome), done = std::move(done)] { done(outcome); });
    return ++last_;
  }

  void cancel(ticket) override {}
  message_encoder encoder() const override { return openai_codec().encoder(); }

  std::size_t asked = 0;
  std::vector<std::string> models;

private:
  timers& clock_;
  verdict_fn verdict_;
  millis latency_;
  ticket last_ = 0;
};

model_outcome reply_of(std::string model) {
  model_reply r;
  r.text = "x";
  r.model = std::move(model);
  return r;
}

model_outcome failure_of(failure_class kind) {
  return tl::unexpected(model_failure{kind, "no", {}, 1});
}

struct rates_fixture : test::actor_fixture {
  std::shared_ptr<timed_endpoint> add(timed_endpoint::verdict_fn verdict, std::uint32_t choice = 0,
                                      std::string model = "") {
    auto e = std::make_shared<timed_endpoint>(clock, std::move(verdict));
    routes.push_back({e, "", std::move(model), choice});
    return e;
  }

  void start(model_client_options options = {}) {
    client = keep(spawn_model_client(sys, routes, options, stats, clock));
    deliver();
  }

  auto call(std::uint64_t run) {
    model_ask m;
    m.request.run = run_id{run};
    m.request.settings = settings;
    auto answer = ask<model_answer>(client, m);
    deliver();
    return answer;
  }

  /// Keeps `n` calls of a job waiting or under way for ever.
  void press(std::uint64_t n, job_share from = {}) {
    for (std::uint64_t i = 0; i < n; ++i)
      keep(sys.spawn([this, run = ++last_run, from](caf::event_based_actor* self) {
        press_on(self, run, from);
      }));
    deliver();
  }

  void press_on(caf::event_based_actor* self, std::uint64_t run, job_share from) {
    model_ask m;
    m.request.run = run_id{run};
    m.request.settings = settings;
    m.from = from;
    self->request(client, caf::infinite, std::move(m))
      .then([this, self, run, from](const model_answer& x) {
        ++(x.outcome ? answered : failed)[from.job];
        press_on(self, run, from);
      });
  }

  std::vector<model_route> routes;
  std::shared_ptr<model_client_stats> stats = std::make_shared<model_client_stats>();
  std::shared_ptr<model_settings> settings = [] {
    auto s = std::make_shared<model_settings>();
    s->model = "asked";
    return s;
  }();
  caf::actor client;
  std::map<std::uint64_t, std::size_t> answered, failed;
  std::uint64_t last_run = 0;
};

const model_outcome& outcome(const std::shared_ptr<std::optional<result<model_answer>>>& a) {
  REQUIRE(a->has_value());
  REQUIRE((*a)->has_value());
  return (**a)->outcome;
}

/// An endpoint's verdict by a simulated rate limiter.
timed_endpoint::verdict_fn limited(test::limited_server& server, const timers& clock) {
  return [&](const model_request&) -> model_outcome {
    auto v = server.ask(100, clock.now());
    if (v.refused)
      return tl::unexpected(
        model_failure{failure_class::rate_limited, "too fast", v.wait, 1, v.stated});
    auto r = reply_of("m");
    r->usage.input = 80;
    r->usage.output = 20;
    r->rates = v.stated;
    return r;
  };
}

}  // namespace

TEST_CASE("through the client, what a server allows is used and hardly anything wasted",
          "[model_client]") {
  for (auto how : {counting::bucket, counting::window})
    for (auto states : {true, false}) {
      rates_fixture fx;
      test::limited_server server{{.how = how, .requests = 600, .states = states}, fx.clock.now()};
      fx.add(limited(server, fx.clock));
      fx.start({.max_in_flight = 256, .rates = {states ? 0.0 : 600.0, 0}});
      fx.press(1'000);
      fx.advance(10min);
      auto used = static_cast<double>(fx.answered[0]) / 6'000;
      auto wasted =
        static_cast<double>(fx.stats->rate_limited) / static_cast<double>(fx.stats->attempts);
      std::printf("model_client, %s, %s: used %.1f %%, wasted %.2f %%, waits %llu\n",
                  how == counting::bucket ? "bucket" : "window", states ? "stated" : "told",
                  used * 100, wasted * 100, static_cast<unsigned long long>(fx.stats->waits));
      CHECK(used >= 0.95);
      CHECK(wasted < 0.02);
      CHECK(fx.failed[0] == 0);
    }
}

TEST_CASE("jobs share an endpoint by their weights", "[model_client]") {
  rates_fixture fx;
  fx.add([](auto&) { return reply_of("m"); });
  fx.start({.rates = {600, 0}});
  fx.press(200, {1, 1});
  fx.press(20, {2, 3});
  fx.advance(5min);
  auto share = static_cast<double>(fx.answered[2]) / static_cast<double>(fx.answered[1]);
  CHECK(share > 2.8);
  CHECK(share < 3.2);
}

TEST_CASE("rates may be told anew while calls wait", "[model_client]") {
  rates_fixture fx;
  auto e = fx.add([](auto&) { return reply_of("m"); });
  fx.start({.rates = {60, 0}});
  fx.press(100);
  fx.advance(10s);
  CHECK(e->asked < 15);
  glue::post(fx.client, model_tune{rate_settings{6'000, 0}, std::nullopt});
  auto before = e->asked;
  fx.advance(5s);
  CHECK(e->asked - before > 200);
  glue::post(fx.client, model_tune{std::nullopt, std::size_t{1}});
  fx.advance(5s);
  CHECK(fx.stats->in_flight == 1);
}

TEST_CASE("calls go to the endpoint with the fewest", "[model_client]") {
  rates_fixture fx;
  auto a = fx.add([](auto&) { return reply_of("m"); });
  auto b = fx.add([](auto&) { return reply_of("m"); });
  fx.start();
  fx.press(8);
  CHECK(a->asked == 4);
  CHECK(b->asked == 4);
}

TEST_CASE("an endpoint that dies costs its calls one try, then it is left alone",
          "[model_client]") {
  rates_fixture fx;
  auto dead = fx.add([](auto&) { return failure_of(failure_class::connect); });
  auto alive = fx.add([](auto&) { return reply_of("m"); });
  fx.start();
  fx.press(8);
  fx.advance(60s);
  CHECK(fx.failed[0] == 0);
  CHECK(fx.answered[0] > 400);
  CHECK(dead->asked < 25);
  CHECK(fx.stats->failovers > 0);
}

TEST_CASE("two endpoints that fail for a while are waited for as one is", "[model_client]") {
  rates_fixture fx;
  auto up = fx.clock.now() + 3s;
  auto weak = [&](auto&) {
    return fx.clock.now() < up ? failure_of(failure_class::server) : reply_of("m");
  };
  auto one = fx.add(weak), two = fx.add(weak);
  fx.start();
  auto call = fx.call(1);
  fx.advance(60ms);  // the first failure takes 50
  CHECK(one->asked == 1);
  CHECK(two->asked == 1);
  fx.advance(60s);
  CHECK(outcome(call).has_value());
}

TEST_CASE("a dead endpoint without another fails its calls after some attempts at coming back",
          "[model_client]") {
  rates_fixture fx;
  auto dead = fx.add([](auto&) { return failure_of(failure_class::connect); });
  fx.start();
  std::vector<std::shared_ptr<std::optional<result<model_answer>>>> calls;
  for (std::uint64_t i = 1; i <= 1'000; ++i)
    calls.push_back(fx.call(i));
  fx.advance(3min);
  for (auto& c : calls)
    REQUIRE(outcome(c).error().kind == failure_class::connect);
  CHECK(dead->asked < 100);
  CHECK(outcome(calls.back()).error().detail == "no; the endpoint did not come back");
}

TEST_CASE("an endpoint that comes back is used again", "[model_client]") {
  rates_fixture fx;
  auto up = fx.clock.now() + 10s;
  fx.add([&](auto&) {
    return fx.clock.now() < up ? failure_of(failure_class::connect) : reply_of("m");
  });
  fx.start();
  std::vector<std::shared_ptr<std::optional<result<model_answer>>>> calls;
  for (std::uint64_t i = 1; i <= 50; ++i)
    calls.push_back(fx.call(i));
  fx.advance(3min);
  for (auto& c : calls) {
    REQUIRE(outcome(c).has_value());
    CHECK_FALSE(outcome(c)->substitute);
  }
}

TEST_CASE("when the tries are used up the fallback answers, by its own name", "[model_client]") {
  rates_fixture fx;
  auto first = fx.add([](auto&) { return failure_of(failure_class::server); });
  auto second = fx.add([](auto&) { return reply_of(""); }, 1, "other");
  fx.start({.retry = {.max_attempts = 2}});
  auto a = fx.call(1);
  fx.advance(60s);
  REQUIRE(outcome(a));
  CHECK(outcome(a)->model == "other");
  CHECK(outcome(a)->substitute);
  CHECK(outcome(a)->attempts == 3);
  CHECK(first->models == std::vector<std::string>{"asked", "asked"});
  CHECK(second->models == std::vector<std::string>{"other"});
  CHECK(fx.stats->fallbacks == 1);
}

TEST_CASE("an empty account falls back at once, a wrong key does not", "[model_client]") {
  rates_fixture fx;
  auto kind = failure_class::quota;
  auto first = fx.add([&](auto&) { return failure_of(kind); });
  fx.add([](auto&) { return reply_of(""); }, 1, "other");
  fx.start();
  auto a = fx.call(1);
  fx.advance(2s);
  CHECK(outcome(a)->model == "other");
  CHECK(first->asked == 1);
  kind = failure_class::auth;
  auto b = fx.call(2);
  fx.advance(2s);
  CHECK(outcome(b).error().kind == failure_class::auth);
}

TEST_CASE("while a model's endpoints are down, calls go to its fallback without a try",
          "[model_client]") {
  rates_fixture fx;
  auto first = fx.add([](auto&) { return failure_of(failure_class::connect); });
  fx.add([](auto&) { return reply_of(""); }, 1, "other");
  fx.start();
  fx.press(50);
  fx.advance(60s);
  CHECK(fx.failed[0] == 0);
  CHECK(fx.answered[0] > 1'000);
  CHECK(first->asked < 50);
}

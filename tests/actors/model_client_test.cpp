#include "actors/model_client.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// An endpoint whose answers the test gives by hand.
class manual_endpoint final : public endpoint {
public:
  ticket ask(const model_request& request, time_point, seen_fn seen, done_fn done) override {
    asked.push_back(request.run.value);
    viewers[last + 1] = std::move(seen);
    open[++last] = std::move(done);
    return last;
  }

  void cancel(ticket which) override {
    cancelled.push_back(which);
    finish(which, tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, 1}));
  }

  message_encoder encoder() const override { return openai_codec().encoder(); }
  bool in_process() const override { return no_server; }

  void finish(ticket which, tl::expected<model_reply, model_failure> outcome) {
    auto node = open.extract(which);
    if (!node.empty())
      node.mapped()(std::move(outcome));
  }

  void reply(ticket which, std::string text) {
    model_reply r;
    r.text = std::move(text);
    finish(which, std::move(r));
  }

  void fail(ticket which, failure_class kind, std::optional<millis> retry_after = {}) {
    finish(which, tl::unexpected(model_failure{kind, "no", retry_after, 1}));
  }

  std::vector<std::uint64_t> asked;
  std::vector<ticket> cancelled;
  std::map<ticket, done_fn> open;
  std::map<ticket, seen_fn> viewers;
  ticket last = 0;
  bool no_server = false;
};

struct client_fixture : test::actor_fixture {
  explicit client_fixture(model_client_options options = {.max_in_flight = 2,
                                                          .retry = {.max_attempts = 3}})
    : server{std::make_shared<manual_endpoint>()}, stats{std::make_shared<model_client_stats>()},
      client{keep(spawn_model_client(sys, server, options, stats, clock))} {}

  auto call(std::uint64_t run, time_point deadline = never, caf::actor viewer = {}) {
    model_ask m;
    m.viewer = std::move(viewer);
    m.request.run = run_id{run};
    m.request.deadline = deadline;
    auto answer = ask<model_answer>(client, m);
    deliver();
    return answer;
  }

  std::shared_ptr<manual_endpoint> server;
  std::shared_ptr<model_client_stats> stats;
  caf::actor client;
};

bool answered(const std::shared_ptr<std::optional<result<model_answer>>>& a) {
  return a->has_value();
}

const tl::expected<model_reply, model_failure>&
outcome(const std::shared_ptr<std::optional<result<model_answer>>>& a) {
  REQUIRE(a->has_value());
  REQUIRE((*a)->has_value());
  return (**a)->outcome;
}

}  // namespace

TEST_CASE("no more tries are open than allowed; the next starts when one ends", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1), b = fx.call(2), c = fx.call(3);
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1, 2});
  fx.server->reply(1, "one");
  fx.deliver();
  CHECK(outcome(a)->text == "one");
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("a transient failure is tried again, a final one is not", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1);
  fx.server->fail(1, failure_class::server);
  fx.advance(10s);
  REQUIRE(fx.server->asked.size() == 2);
  fx.server->reply(2, "at last");
  fx.deliver();
  CHECK(outcome(a)->text == "at last");
  CHECK(outcome(a)->attempts == 2);

  auto b = fx.call(2);
  fx.server->fail(3, failure_class::auth);
  fx.deliver();
  CHECK(outcome(b).error().kind == failure_class::auth);
  CHECK(fx.server->asked.size() == 3);
}

TEST_CASE("after the last try the asker learns how often it was tried", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1);
  for (endpoint::ticket t = 1; t <= 3; ++t) {
    REQUIRE(fx.server->open.contains(t));
    fx.server->fail(t, failure_class::connect);
    fx.advance(60s);
  }
  CHECK(outcome(a).error().attempts == 3);
  CHECK(outcome(a).error().detail.find("3 tries") != std::string::npos);
}

TEST_CASE("a Retry-After holds back every call to the endpoint", "[model_client]") {
  client_fixture fx{{.max_in_flight = 4}};
  auto a = fx.call(1);
  fx.server->fail(1, failure_class::rate_limited, 2000ms);
  fx.deliver();
  auto b = fx.call(2);
  fx.advance(1999ms);
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1});
  fx.advance(1ms);
  CHECK(fx.server->asked.size() == 3);
  CHECK(fx.stats->rate_limited == 1);
}

TEST_CASE("cancelling closes the try and frees its place", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1), b = fx.call(2), c = fx.call(3);
  glue::post(fx.client, model_cancel{run_id{1}});
  fx.deliver();
  CHECK(fx.server->cancelled == std::vector<endpoint::ticket>{1});
  CHECK(outcome(a).error().kind == failure_class::cancelled);
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("a call cancelled while it waits is never sent", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1), b = fx.call(2), c = fx.call(3);
  glue::post(fx.client, model_cancel{run_id{3}});
  fx.deliver();
  CHECK(answered(c));
  fx.server->reply(1, "");
  fx.deliver();
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a call cancelled in its backoff is not tried again", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1);
  fx.server->fail(1, failure_class::server);
  fx.deliver();
  glue::post(fx.client, model_cancel{run_id{1}});
  fx.advance(60s);
  CHECK(outcome(a).error().kind == failure_class::cancelled);
  CHECK(fx.server->asked.size() == 1);
}

TEST_CASE("a deadline that passes in the queue ends the call without a try", "[model_client]") {
  client_fixture fx{{.max_in_flight = 1}};
  auto a = fx.call(1);
  auto b = fx.call(2, fx.clock.now() + 1s);
  fx.advance(2s);
  fx.server->reply(1, "");
  fx.deliver();
  CHECK(outcome(b).error().kind == failure_class::timeout);
  CHECK(fx.server->asked == std::vector<std::uint64_t>{1});
}

TEST_CASE("a full queue rejects, and the client goes on", "[model_client]") {
  client_fixture fx{{.max_in_flight = 1, .max_queue = 1}};
  auto a = fx.call(1), b = fx.call(2), c = fx.call(3);
  CHECK(outcome(c).error().detail.find("queue is full") != std::string::npos);
  fx.server->reply(1, "x");
  fx.deliver();
  CHECK(answered(a));
  CHECK(fx.server->asked.size() == 2);
}

TEST_CASE("an ending client closes the tries it has open", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1);
  glue::post(fx.client, stop{});
  fx.deliver();
  CHECK(fx.server->cancelled.size() == 1);
  REQUIRE(a->has_value());
  CHECK(!(*a)->has_value());
}

TEST_CASE("a viewer sees the reply as it comes, and before the answer", "[model_client]") {
  client_fixture fx;
  auto [viewer, seen] = fx.collector<model_seen>();
  auto a = fx.call(7, never, viewer);
  REQUIRE(fx.server->viewers[1]);
  fx.server->viewers[1]({{model_delta::kind::text, "Hel", 0, ""}});
  fx.deliver();
  REQUIRE(seen->size() == 1);
  CHECK((*seen)[0].run == run_id{7});
  CHECK((*seen)[0].pieces[0].text == "Hel");
  CHECK(!answered(a));
  fx.server->reply(1, "Hello");
  fx.deliver();
  CHECK(outcome(a)->text == "Hello");
}

TEST_CASE("without a viewer nothing is streamed", "[model_client]") {
  client_fixture fx;
  auto a = fx.call(1);
  CHECK(!fx.server->viewers[1]);
}

TEST_CASE("a viewer that saw some of a failed try is told that the reply begins anew",
          "[model_client]") {
  client_fixture fx;
  auto [viewer, seen] = fx.collector<model_seen>();
  auto a = fx.call(1, never, viewer);
  fx.server->viewers[1]({{model_delta::kind::text, "Hal", 0, ""}});
  fx.server->fail(1, failure_class::connect);
  fx.deliver();
  REQUIRE(seen->size() == 2);
  CHECK((*seen)[1].pieces[0].what == model_delta::kind::restart);
  fx.advance(60s);
  // The second try failed before it showed anything.
  fx.server->fail(2, failure_class::connect);
  fx.advance(60s);
  fx.server->reply(3, "x");
  fx.deliver();
  CHECK(seen->size() == 2);
  CHECK(outcome(a)->attempts == 3);
}

TEST_CASE("a server is tried with few requests at first, what is in process with all",
          "[model_client]") {
  for (auto no_server : {false, true}) {
    test::actor_fixture fx;
    auto where = std::make_shared<manual_endpoint>();
    where->no_server = no_server;
    auto stats = std::make_shared<model_client_stats>();
    auto client =
      fx.keep(spawn_model_client(fx.sys, where, {.max_in_flight = 100}, stats, fx.clock));
    for (std::uint64_t run = 1; run <= 50; ++run) {
      model_ask m;
      m.request.settings = std::make_shared<const model_settings>();
      m.request.run = run_id{run};
      static_cast<void>(fx.ask<model_answer>(client, std::move(m)));
    }
    fx.deliver();
    CHECK(where->asked.size() == (no_server ? 50 : concurrency_settings{}.first));
  }
}

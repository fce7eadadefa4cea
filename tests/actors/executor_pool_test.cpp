#include "actors/executor_pool.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/scripted_executor.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct pool_fixture : test::actor_fixture {
  explicit pool_fixture(
    executor_pool_options options = {.max_sandboxes = 2},
    test::snippet_script script = [](const snippet&) { return test::printed("ok"); })
    : backend{std::make_shared<test::scripted_executor>(std::move(script))},
      stats{std::make_shared<executor_pool_stats>()},
      pool{keep(spawn_executor_pool(sys, backend, options, stats))} {}

  caf::actor owner() {
    return keep(sys.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; }));
  }

  auto open(const caf::actor& who, std::uint32_t below = 0) {
    auto answer = ask<sandbox_ready>(pool, sandbox_open{run_id{1}, {}, who, below, false});
    deliver();
    return answer;
  }

  std::shared_ptr<test::scripted_executor> backend;
  std::shared_ptr<executor_pool_stats> stats;
  caf::actor pool;
};

}  // namespace

TEST_CASE("no more sandboxes live than allowed; the next opens when one is verified gone",
          "[executor_pool]") {
  pool_fixture fx;
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who), c = fx.open(who);
  REQUIRE(a->has_value());
  CHECK(!c->has_value());
  auto closed = fx.ask<sandbox_closed>((**a)->sandbox, sandbox_close{});
  fx.deliver();
  CHECK((**closed)->report.clean());
  REQUIRE(c->has_value());
  CHECK((*c)->has_value());
  CHECK(fx.backend->log->peak == 2);
}

TEST_CASE("a sandbox does not outlive its owner", "[executor_pool]") {
  pool_fixture fx;
  auto who = fx.owner();
  auto a = fx.open(who);
  caf::anon_send_exit(who, caf::exit_reason::kill);
  fx.deliver();
  CHECK(fx.backend->log->live == 0);
  CHECK(fx.stats->closed_clean == 1);
}

TEST_CASE("an owner that died while its sandbox was opening leaves none behind",
          "[executor_pool]") {
  pool_fixture fx;
  fx.backend->hold = true;
  auto who = fx.owner();
  auto a = fx.open(who);
  caf::anon_send_exit(who, caf::exit_reason::kill);
  fx.deliver();
  fx.backend->release();
  fx.deliver();
  CHECK(fx.backend->log->opened == 1);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("an owner that died while it waited gets no sandbox", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  auto first = fx.owner(), second = fx.owner(), third = fx.owner();
  auto a = fx.open(first), b = fx.open(second), c = fx.open(third);
  caf::anon_send_exit(second, caf::exit_reason::kill);
  fx.deliver();
  static_cast<void>(fx.ask<sandbox_closed>((**a)->sandbox, sandbox_close{}));
  fx.deliver();
  REQUIRE(c->has_value());
  CHECK((*c)->has_value());
  CHECK(fx.backend->log->opened == 2);
}

TEST_CASE("a failed open frees its place and tells why", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  fx.backend->fail_next = 3;
  auto who = fx.owner();
  auto a = fx.open(who);
  REQUIRE(a->has_value());
  REQUIRE(!(*a)->has_value());
  CHECK((*a)->error().detail == "no sandbox today");
  CHECK((*fx.open(who))->has_value());
}

TEST_CASE("an open that its backend lost is tried again", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  fx.backend->fail_next = 2;
  CHECK((*fx.open(fx.owner()))->has_value());
  CHECK(fx.stats->open_failures == 2);
}

TEST_CASE("a full queue is an error, not a wait without end", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1, .max_queue = 1}};
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who), c = fx.open(who);
  CHECK(!b->has_value());
  REQUIRE(c->has_value());
  CHECK((*c)->error().code == errc::over_budget);
  CHECK((*c)->error().detail.starts_with("1 sandboxes are in use and 1 runs wait for one"));
  CHECK((*c)->error().detail.find("--max-sandboxes") != std::string::npos);
}

TEST_CASE("a run that has left the queue makes room for another", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1, .max_queue = 1}};
  auto first = fx.owner(), second = fx.owner(), third = fx.owner();
  auto a = fx.open(first), b = fx.open(second);
  caf::anon_send_exit(second, caf::exit_reason::kill);
  fx.deliver();
  auto c = fx.open(third);
  CHECK(!c->has_value());
  static_cast<void>(fx.ask<sandbox_closed>((**a)->sandbox, sandbox_close{}));
  fx.deliver();
  REQUIRE(c->has_value());
  CHECK((*c)->has_value());
}

TEST_CASE("runs get their sandboxes in the order in which they asked", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who), c = fx.open(who), d = fx.open(who);
  for (auto* next : {&a, &b, &c}) {
    REQUIRE((*next)->has_value());
    static_cast<void>(fx.ask<sandbox_closed>((**(*next))->sandbox, sandbox_close{}));
    fx.deliver();
  }
  REQUIRE(d->has_value());
  CHECK((*d)->has_value());
  CHECK(fx.backend->log->peak == 1);
}

TEST_CASE("with little memory left an open waits until a sandbox has gone", "[executor_pool]") {
  auto memory = std::make_shared<std::uint64_t>(600u << 20);
  pool_fixture fx{{.max_sandboxes = 9, .memory = [memory] { return *memory; }}};
  auto who = fx.owner();
  auto a = fx.open(who);
  *memory = 100u << 20;
  auto b = fx.open(who), c = fx.open(who);
  REQUIRE((*a)->has_value());
  CHECK(!b->has_value());
  // The last that goes makes room for one, however little memory there is.
  static_cast<void>(fx.ask<sandbox_closed>((**a)->sandbox, sandbox_close{}));
  fx.deliver();
  REQUIRE(b->has_value());
  CHECK((*b)->has_value());
  CHECK(!c->has_value());
  *memory = 600u << 20;
  auto d = fx.open(who);
  REQUIRE(c->has_value());
  CHECK((*c)->has_value());
  REQUIRE(d->has_value());
  CHECK((*d)->has_value());
  CHECK(fx.backend->log->live == 3);
}

TEST_CASE("a machine that does not tell its memory is no reason to wait", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 2, .memory = [] { return std::uint64_t{0}; }}};
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who);
  CHECK(a->has_value());
  CHECK(b->has_value());
}

TEST_CASE("an open that took too long is told as such, and its place is free", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  fx.backend->hold = true;
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who);
  fx.backend->refuse({errc::timeout, "the sandbox was not ready after 10.0 s"});
  fx.deliver();
  REQUIRE(a->has_value());
  REQUIRE(!(*a)->has_value());
  CHECK((*a)->error().code == errc::timeout);
  CHECK(fx.stats->open_failures == 1);
  fx.backend->release();
  fx.deliver();
  REQUIRE(b->has_value());
  CHECK((*b)->has_value());
}

TEST_CASE("a sandbox that was not verified gone costs its place, but never the last one",
          "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 2}};
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who), c = fx.open(who), d = fx.open(who);
  fx.backend->boxes[0]->leaves = fx.backend->boxes[1]->leaves = "process 7 still takes signals";
  static_cast<void>(fx.ask<sandbox_closed>((**a)->sandbox, sandbox_close{}));
  fx.deliver();
  CHECK(!c->has_value());
  static_cast<void>(fx.ask<sandbox_closed>((**b)->sandbox, sandbox_close{}));
  fx.deliver();
  REQUIRE(c->has_value());
  CHECK((*c)->has_value());
  CHECK(!d->has_value());
  CHECK(fx.stats->closed_unclean == 2);
}

TEST_CASE("a dead snippet's sandbox closes by itself", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1},
                  [](const snippet&) { return test::ended(snippet_end::crashed, "signal 11"); }};
  auto who = fx.owner();
  auto a = fx.open(who);
  auto ran = fx.ask<snippet_answer>((**a)->sandbox, snippet_run{{.code = "x"}});
  fx.deliver();
  CHECK((**ran)->outcome.end == snippet_end::crashed);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("a sandbox that died while it was idle gives its place back", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}};
  auto who = fx.owner();
  auto a = fx.open(who);
  fx.backend->boxes.front()->gone = true;
  auto ran = fx.ask<snippet_answer>((**a)->sandbox, snippet_run{{.code = "1"}});
  auto next = fx.open(who);
  REQUIRE(ran->has_value());
  CHECK((**ran)->outcome.end == snippet_end::killed);
  REQUIRE(next->has_value());
  CHECK((*next)->has_value());
}

TEST_CASE("closing a sandbox ends the snippet in it", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}, [](const snippet&) { return std::nullopt; }};
  auto who = fx.owner();
  auto a = fx.open(who);
  auto box = (**a)->sandbox;
  auto ran = fx.ask<snippet_answer>(box, snippet_run{{.code = "while True: pass"}});
  fx.deliver();
  CHECK(!ran->has_value());
  glue::post(box, stop{});
  fx.deliver();
  REQUIRE(ran->has_value());
  CHECK((**ran)->outcome.end == snippet_end::killed);
}

TEST_CASE("a second snippet while one runs is refused, the first goes on", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 1}, [](const snippet&) { return std::nullopt; }};
  auto who = fx.owner();
  auto box = (**fx.open(who))->sandbox;
  auto first = fx.ask<snippet_answer>(box, snippet_run{{.code = "1"}});
  auto second = fx.ask<snippet_answer>(box, snippet_run{{.code = "2"}});
  fx.deliver();
  CHECK(!first->has_value());
  REQUIRE(second->has_value());
  CHECK(fx.backend->log->ran.size() == 1);
}

TEST_CASE("stop closes every sandbox, refuses new ones, and then ends the pool",
          "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 2}};
  auto who = fx.owner();
  auto a = fx.open(who), b = fx.open(who), c = fx.open(who);
  bool ended = false;
  fx.pool->attach_functor([&](const caf::error&) { ended = true; });
  glue::post(fx.pool, stop{});
  fx.deliver();
  CHECK(fx.backend->log->live == 0);
  REQUIRE(c->has_value());
  CHECK(!(*c)->has_value());
  CHECK(ended);
}

TEST_CASE("stop waits for an open that is on its way", "[executor_pool]") {
  pool_fixture fx;
  fx.backend->hold = true;
  auto a = fx.open(fx.owner());
  bool ended = false;
  fx.pool->attach_functor([&](const caf::error&) { ended = true; });
  glue::post(fx.pool, stop{});
  fx.deliver();
  CHECK(!ended);
  fx.backend->release();
  fx.deliver();
  CHECK(ended);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("agents that wait for managed agents never hold all places", "[executor_pool]") {
  pool_fixture fx{{.max_sandboxes = 3}};
  auto who = fx.owner();
  std::vector<decltype(fx.open(who))> managers;
  for (int i = 0; i < 4; ++i)
    managers.push_back(fx.open(who, 1));
  CHECK(managers[1]->has_value());
  CHECK_FALSE(managers[2]->has_value());  // the third place is for those below
  auto child = fx.open(who);
  REQUIRE(child->has_value());
  auto next_child = fx.open(who);
  CHECK_FALSE(next_child->has_value());
  auto closed = fx.ask<sandbox_closed>((**child)->sandbox, sandbox_close{});
  fx.deliver();
  CHECK(next_child->has_value());  // before the managers that asked earlier
  CHECK_FALSE(managers[2]->has_value());
}

TEST_CASE("a team deeper than there are sandboxes is told so", "[executor_pool]") {
  pool_fixture fx;
  auto who = fx.owner();
  auto refused = fx.open(who, 2);
  REQUIRE(refused->has_value());
  REQUIRE_FALSE((*refused)->has_value());
  CHECK((*refused)->error().detail.find("--max-sandboxes") != std::string::npos);
}

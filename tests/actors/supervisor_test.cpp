#include "actors/address.hpp"
#include "actors/supervisor.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// Children that do as they are told, and a record of what happened to them.
struct spawn_log {
  std::vector<std::string> lines;
  std::map<std::string, caf::actor> last;
  std::vector<supervision_report> reports;

  child_spec child(const std::string& name, restart_type restart = restart_type::permanent) {
    child_spec spec;
    spec.name = name;
    spec.restart = restart;
    spec.start = [this, name](caf::actor_system& sys) {
      lines.push_back("+" + name);
      last[name] = sys.spawn([this, name](caf::event_based_actor* self) -> caf::behavior {
        self->attach_functor([this, name](const caf::error&) { lines.push_back("-" + name); });
        return {[self](const stop&) { self->quit(); },
                [self](const std::string& how) {
                  if (how == "crash")
                    self->quit(glue::to_caf({errc::internal, "crashed"}));
                  else if (how == "quit")
                    self->quit();
                }};
      });
      return last[name];
    };
    return spec;
  }

  supervisor_options options(strategy how, std::vector<child_spec> children) {
    supervisor_options o;
    o.name = "top";
    o.how = how;
    o.children = std::move(children);
    o.restarts = {
      .max_restarts = 3, .within = 10s, .first_delay = 100ms, .longest_delay = 5s, .jitter = false};
    o.report = [this](const supervision_report& r) { reports.push_back(r); };
    return o;
  }

  void tell(const std::string& name, const std::string& what) { glue::post(last[name], what); }

  std::string take() {
    std::string all;
    for (auto& l : lines)
      all += (all.empty() ? "" : " ") + l;
    lines.clear();
    return all;
  }
};

struct ended {
  bool yes = false;
  caf::error why;
};

std::shared_ptr<ended> watch_end(const caf::actor& a) {
  auto e = std::make_shared<ended>();
  a->attach_functor([e](const caf::error& why) { *e = {true, why}; });
  return e;
}

}  // namespace

TEST_CASE("a crashed permanent child comes back after its backoff, not before", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup = fx.keep(spawn_supervisor(
    fx.sys, log.options(strategy::one_for_one, {log.child("a"), log.child("b")}), fx.clock));
  fx.deliver();
  CHECK(log.take() == "+a +b");
  log.tell("a", "crash");
  fx.advance(99ms);
  CHECK(log.take() == "-a");
  fx.advance(1ms);
  CHECK(log.take() == "+a");
}

TEST_CASE("restart type times way of ending is OTP's table", "[supervisor]") {
  struct row {
    restart_type type;
    const char* how;
    bool comes_back;
  };
  for (auto r :
       {row{restart_type::permanent, "crash", true}, row{restart_type::permanent, "quit", true},
        row{restart_type::transient, "crash", true}, row{restart_type::transient, "quit", false},
        row{restart_type::temporary, "crash", false},
        row{restart_type::temporary, "quit", false}}) {
    spawn_log log;
    test::actor_fixture fx;
    auto sup = fx.keep(spawn_supervisor(
      fx.sys, log.options(strategy::one_for_one, {log.child("a", r.type)}), fx.clock));
    fx.deliver();
    log.take();
    log.tell("a", r.how);
    fx.advance(1s);
    CHECK(log.take() == (r.comes_back ? "-a +a" : "-a"));
  }
}

TEST_CASE("one_for_all stops the others in reverse and starts all in order", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup = fx.keep(spawn_supervisor(
    fx.sys, log.options(strategy::one_for_all, {log.child("a"), log.child("b"), log.child("c")}),
    fx.clock));
  fx.deliver();
  log.take();
  log.tell("b", "crash");
  fx.advance(1s);
  CHECK(log.take() == "-b -c -a +a +b +c");
}

TEST_CASE("rest_for_one touches only those started later", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup =
    fx.keep(spawn_supervisor(fx.sys,
                             log.options(strategy::rest_for_one, {log.child("a"), log.child("b"),
                                                                  log.child("c"), log.child("d")}),
                             fx.clock));
  fx.deliver();
  log.take();
  log.tell("b", "crash");
  fx.advance(1s);
  CHECK(log.take() == "-b -d -c +b +c +d");
}

TEST_CASE("too many restarts end the supervisor, its children stopped in reverse", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup = spawn_supervisor(
    fx.sys, log.options(strategy::one_for_one, {log.child("a"), log.child("b")}), fx.clock);
  auto end = watch_end(sup);
  fx.deliver();
  for (int i = 0; i < 3; ++i) {
    log.tell("b", "crash");
    fx.advance(1s);
  }
  CHECK(!end->yes);
  log.take();
  log.tell("b", "crash");
  fx.advance(1s);
  CHECK(end->yes);
  CHECK(glue::from_caf(end->why).code == errc::unavailable);
  CHECK(log.take() == "-b -a");
  CHECK(log.reports.back().decision == "stopped");
}

TEST_CASE("a supervisor's failure climbs to the one above it", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  child_spec inner;
  inner.name = "inner";
  inner.start = [&](caf::actor_system& sys) {
    auto o = log.options(strategy::one_for_one, {log.child("a")});
    o.name = "inner";
    o.restarts.max_restarts = 0;
    return spawn_supervisor(sys, o, fx.clock);
  };
  auto top =
    fx.keep(spawn_supervisor(fx.sys, log.options(strategy::one_for_one, {inner}), fx.clock));
  fx.deliver();
  log.take();
  log.tell("a", "crash");
  fx.advance(1s);
  CHECK(log.take() == "-a +a");
  bool seen = false;
  for (auto& r : log.reports)
    seen = seen || (r.supervisor == "inner" && r.decision.starts_with("gave up"));
  CHECK(seen);
}

TEST_CASE("stop ends children in reverse start order and then the supervisor, normally",
          "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup = spawn_supervisor(
    fx.sys, log.options(strategy::one_for_one, {log.child("a"), log.child("b"), log.child("c")}),
    fx.clock);
  auto end = watch_end(sup);
  fx.deliver();
  log.take();
  glue::post(sup, stop{});
  fx.deliver();
  CHECK(log.take() == "-c -b -a");
  CHECK(end->yes);
  CHECK(glue::is_normal_exit(end->why));
}

TEST_CASE("a child that ignores stop is killed at its shutdown time, not before", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  bool gone = false;
  child_spec deaf;
  deaf.name = "deaf";
  deaf.shutdown = 500ms;
  deaf.start = [&](caf::actor_system& sys) {
    return sys.spawn([&](caf::event_based_actor* self) -> caf::behavior {
      self->attach_functor([&](const caf::error&) { gone = true; });
      return {[](const stop&) {}};
    });
  };
  auto sup = spawn_supervisor(fx.sys, log.options(strategy::one_for_one, {deaf}), fx.clock);
  auto end = watch_end(sup);
  fx.deliver();
  glue::post(sup, stop{});
  fx.advance(499ms);
  CHECK(!gone);
  fx.advance(1ms);
  CHECK(gone);
  CHECK(end->yes);
}

TEST_CASE("a start that throws counts as an end and is tried again", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto good = log.child("a");
  auto start = good.start;
  int tries = 0;
  good.start = [&](caf::actor_system& sys) {
    if (++tries < 3)
      throw std::runtime_error{"not yet"};
    return start(sys);
  };
  auto sup =
    fx.keep(spawn_supervisor(fx.sys, log.options(strategy::one_for_one, {good}), fx.clock));
  fx.advance(5s);
  CHECK(tries == 3);
  CHECK(log.take() == "+a");
}

TEST_CASE("the address follows the living child", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto spec = log.child("a");
  spec.where = std::make_shared<address>();
  auto where = spec.where;
  auto sup =
    fx.keep(spawn_supervisor(fx.sys, log.options(strategy::one_for_one, {spec}), fx.clock));
  fx.deliver();
  auto first = where->get();
  CHECK(first == log.last["a"]);
  log.tell("a", "crash");
  fx.deliver();
  CHECK(!where->get());
  fx.advance(1s);
  CHECK(where->get());
  CHECK(where->get() != first);
}

TEST_CASE("simple_one_for_one tells the asker of each child's end and keeps nothing of it",
          "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup =
    fx.keep(spawn_supervisor(fx.sys, log.options(strategy::simple_one_for_one, {}), fx.clock));
  auto [notify, ends] = fx.collector<child_ended>();
  auto started =
    fx.ask<child_started>(sup, start_child{log.child("x", restart_type::temporary), notify});
  fx.deliver();
  REQUIRE(started->has_value());
  REQUIRE((*started)->has_value());
  log.tell("x", "crash");
  fx.deliver();
  REQUIRE(ends->size() == 1);
  CHECK(!ends->front().how.normal);
  auto again =
    fx.ask<child_started>(sup, start_child{log.child("x", restart_type::temporary), notify});
  fx.deliver();
  CHECK((*again)->has_value());
}

TEST_CASE("stop reaches a thousand dynamic children", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup = spawn_supervisor(fx.sys, log.options(strategy::simple_one_for_one, {}), fx.clock);
  auto end = watch_end(sup);
  for (int i = 0; i < 1000; ++i)
    glue::post(sup, start_child{log.child(std::to_string(i), restart_type::temporary), nullptr});
  fx.deliver();
  CHECK(log.lines.size() == 1000);
  glue::post(sup, stop{});
  fx.deliver();
  CHECK(log.lines.size() == 2000);
  CHECK(end->yes);
}

TEST_CASE("a stop during a backoff is obeyed at once", "[supervisor]") {
  spawn_log log;  // outlives the fixture, whose end it hears
  test::actor_fixture fx;
  auto sup =
    spawn_supervisor(fx.sys, log.options(strategy::one_for_one, {log.child("a")}), fx.clock);
  auto end = watch_end(sup);
  fx.deliver();
  log.tell("a", "crash");
  fx.advance(50ms);
  log.take();
  glue::post(sup, stop{});
  fx.deliver();
  CHECK(end->yes);
  fx.advance(1s);
  CHECK(log.take().empty());
}

TEST_CASE("a supervisor that is killed leaves no orphans", "[supervisor]") {
  spawn_log log;
  test::actor_fixture fx;
  auto sup = spawn_supervisor(
    fx.sys, log.options(strategy::one_for_one, {log.child("a"), log.child("b")}), fx.clock);
  fx.deliver();
  log.take();
  caf::anon_send_exit(sup, caf::exit_reason::kill);
  fx.deliver();
  CHECK(log.lines.size() == 2);
}

TEST_CASE("impossible specs are refused by name", "[supervisor]") {
  spawn_log log;
  CHECK(!validate(log.options(strategy::one_for_one, {log.child("a"), log.child("a")})));
  CHECK(!validate(log.options(strategy::simple_one_for_one, {log.child("a")})));
  child_spec empty;
  empty.name = "empty";
  auto bad = validate(log.options(strategy::one_for_one, {empty}));
  REQUIRE(!bad);
  CHECK(bad.error().detail.find("empty") != std::string::npos);
}

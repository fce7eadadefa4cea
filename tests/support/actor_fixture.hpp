#pragma once
// A deterministic actor system: nothing runs until deliver(), time moves only by advance().

#include "actors/caf_glue.hpp"
#include "actors/messages.hpp"
#include "runtime/core/manual_timers.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/stateful_actor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

class actor_fixture {
public:
  actor_fixture() : sys{config_} {}

  ~actor_fixture() {
    for (auto& a : spawned_)
      caf::anon_send_exit(a, caf::exit_reason::kill);
    spawned_.clear();
    deliver();
  }

  /// Moves messages until none is left.
  void deliver() { scheduler().run(); }

  /// Moves time, delivering before and after each timer that falls due.
  void advance(steady_clock::duration span) {
    deliver();
    auto until = clock.now() + span;
    for (auto due = clock.next(); due && *due <= until; due = clock.next()) {
      clock.advance(*due - clock.now());
      deliver();
    }
    clock.advance(until - clock.now());
    deliver();
  }

  /// An actor to be ended with the fixture.
  caf::actor keep(caf::actor a) {
    spawned_.push_back(a);
    return a;
  }

  /// Sends a request and returns where its answer will be.
  template <class Answer, class Message>
  std::shared_ptr<std::optional<result<Answer>>> ask(const caf::actor& to, Message message) {
    auto answer = std::make_shared<std::optional<result<Answer>>>();
    keep(sys.spawn([=](caf::event_based_actor* self) {
      self->request(to, caf::infinite, message)
        .then([answer](Answer& x) { *answer = std::move(x); },
              [answer](const caf::error& e) { *answer = fail(glue::from_caf(e)); });
    }));
    return answer;
  }

  /// An actor that keeps every `Message` it gets.
  template <class Message>
  std::pair<caf::actor, std::shared_ptr<std::vector<Message>>> collector() {
    auto got = std::make_shared<std::vector<Message>>();
    auto a = keep(sys.spawn([got](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(caf::drop);
      return {[got](const Message& x) { got->push_back(x); }};
    }));
    return {a, got};
  }

private:
  struct config : caf::actor_system_config {
    config() {
      glue::init_types();
      set("caf.scheduler.policy", "testing");
    }
  };

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(sys.scheduler());
  }

  config config_;
  std::vector<caf::actor> spawned_;

public:
  manual_timers clock;
  caf::actor_system sys;
};

}  // namespace troupe::test

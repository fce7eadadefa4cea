#include "actors/tool_dispatcher.hpp"
#include "tests/support/actor_fixture.hpp"

#include <caf/typed_response_promise.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr int answer_one = 1;

/// A host whose calls end when the test says so.
class held_host {
public:
  explicit held_host(test::actor_fixture& fx)
    : actor{fx.keep(fx.sys.spawn([held = held_](caf::event_based_actor* self) -> caf::behavior {
        return {[=](const tool_call& x) -> caf::result<tool_answer> {
                  held->push_back({x.context.call, self->make_response_promise<tool_answer>()});
                  return held->back().second;
                },
                [=](int) {
                  auto [id, promise] = held->front();
                  held->erase(held->begin());
                  promise.deliver(tool_answer{id, json(true)});
                }};
      }))} {}

  [[nodiscard]] std::size_t calls() const { return held_->size(); }
  void answer() const { caf::anon_send(actor, answer_one); }

private:
  using call = std::pair<call_id, caf::typed_response_promise<tool_answer>>;
  std::shared_ptr<std::vector<call>> held_ = std::make_shared<std::vector<call>>();

public:
  caf::actor actor;
};

struct dispatcher_fixture : test::actor_fixture {
  std::vector<std::shared_ptr<address>> seats{std::make_shared<address>(),
                                              std::make_shared<address>()};
  caf::actor dispatcher = keep(spawn_tool_dispatcher(sys, seats, clock));
  std::uint64_t last = 0;

  std::shared_ptr<std::optional<result<tool_answer>>> call() {
    tool_call x{nullptr, "t", json::object(), {run_id{1}, call_id{++last}, never}};
    auto answer = ask<tool_answer>(dispatcher, std::move(x));
    deliver();
    return answer;
  }
};

}  // namespace

TEST_CASE("no call waits behind one that blocks while a host is free", "[tool_dispatcher]") {
  dispatcher_fixture fx;
  held_host blocked{fx}, quick{fx};
  fx.seats[0]->set(blocked.actor);
  fx.seats[1]->set(quick.actor);
  auto first = fx.call();
  REQUIRE(blocked.calls() == 1);
  std::vector<std::shared_ptr<std::optional<result<tool_answer>>>> others;
  for (int i = 0; i < 5; ++i)
    others.push_back(fx.call());
  for (int i = 0; i < 5; ++i) {
    CHECK(quick.calls() == 1);  // one at a time
    quick.answer();
    fx.deliver();
    CHECK((*others[static_cast<std::size_t>(i)])->value().id.value == 2U + i);
  }
  CHECK(quick.calls() == 0);
  CHECK(!*first);
  blocked.answer();
  fx.deliver();
  CHECK((*first)->value().id == call_id{1});
}

TEST_CASE("a host that has ended gets no further call, its successor does", "[tool_dispatcher]") {
  dispatcher_fixture fx;
  held_host ended{fx}, other{fx}, successor{fx};
  caf::anon_send_exit(ended.actor, caf::exit_reason::kill);
  fx.deliver();
  fx.seats[0]->set(ended.actor);
  fx.seats[1]->set(other.actor);
  auto lost = fx.call();
  REQUIRE(*lost);
  CHECK(!(*lost)->has_value());
  auto second = fx.call(), third = fx.call();
  fx.advance(1s);
  CHECK(other.calls() == 1);
  CHECK(!*third);
  fx.seats[0]->set(successor.actor);
  fx.advance(1s);
  CHECK(successor.calls() == 1);
  successor.answer();
  other.answer();
  fx.deliver();
  CHECK((*second)->has_value());
  CHECK((*third)->has_value());
}

TEST_CASE("calls wait for the first host", "[tool_dispatcher]") {
  dispatcher_fixture fx;
  auto early = fx.call();
  held_host host{fx};
  fx.seats[1]->set(host.actor);
  fx.advance(1s);
  REQUIRE(host.calls() == 1);
  host.answer();
  fx.deliver();
  CHECK((*early)->has_value());
}

#include "actors/tool_dispatcher.hpp"

#include "actors/ask_again.hpp"
#include "actors/caf_glue.hpp"
#include "actors/messages.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>

namespace troupe {
namespace {

class tool_dispatcher_state {
public:
  tool_dispatcher_state(caf::event_based_actor* self,
                        const std::vector<std::shared_ptr<address>>& hosts, timers& clock)
    : self_{self}, clock_{clock} {
    for (const auto& at : hosts)
      seats_.push_back({at, {}, false});
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](tool_call& x) -> caf::result<tool_answer> {
        auto promise = self_->make_response_promise<tool_answer>();
        waiting_.push_back({promise, std::move(x)});
        serve();
        return promise;
      },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "tool_dispatcher";

private:
  /// Where a host is reached. One that has failed is not asked again: the next one to be found
  /// there is another.
  struct seat {
    std::shared_ptr<address> at;
    caf::actor failed;
    bool busy = false;
  };

  struct waiting_call {
    caf::typed_response_promise<tool_answer> promise;
    tool_call call;
  };

  void serve() {
    auto restarting = false;
    for (auto& s : seats_) {
      if (waiting_.empty())
        return;
      if (s.busy)
        continue;
      if (auto host = s.at->get(); host && host != s.failed)
        hand_over(s, host);
      else
        restarting = true;
    }
    if (restarting && !waiting_.empty())
      look_again();
  }

  void hand_over(seat& s, const caf::actor& host) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    s.busy = true;
    s.failed = nullptr;
    self_->request(host, caf::infinite, std::move(next.call))
      .then(
        [this, &s, promise = next.promise](tool_answer& answer) mutable {
          promise.deliver(std::move(answer));
          s.busy = false;
          serve();
        },
        [this, &s, host, promise = next.promise](caf::error& why) mutable {
          promise.deliver(std::move(why));
          s.busy = false;
          s.failed = host;
          serve();
        });
  }

  void look_again() {
    if (std::exchange(looking_, true))
      return;
    ask_again(self_, clock_, [this] {
      looking_ = false;
      serve();
    });
  }

  caf::event_based_actor* self_;
  timers& clock_;
  std::vector<seat> seats_;  // of a fixed number: what is under way refers to them
  std::deque<waiting_call> waiting_;
  bool looking_ = false;
};

}  // namespace

caf::actor spawn_tool_dispatcher(caf::actor_system& sys,
                                 std::vector<std::shared_ptr<address>> hosts, timers& clock) {
  return sys.spawn<caf::stateful_actor<tool_dispatcher_state>>(std::move(hosts), std::ref(clock));
}

}  // namespace troupe

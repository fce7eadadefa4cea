#include "actors/event_hub.hpp"

#include "actors/caf_glue.hpp"
#include "runtime/core/log.hpp"

#include <caf/stateful_actor.hpp>

#include <vector>

namespace troupe {
namespace {

class event_hub_state {
public:
  event_hub_state(caf::event_based_actor* self, std::shared_ptr<hub_interest> interest)
    : self_{self}, interest_{std::move(interest)} {}

  ~event_hub_state() { interest_->events = false; }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](const subscribe& x) {
        viewers_.push_back(x);
        update_interest();
      },
      [this](const run_event& x) {
        offer([&](const subscribe& v) { return !v.events || v.events(x); });
      },
      [this](const batch_progress& x) {
        offer([&](const subscribe& v) { return !v.progress || v.progress(x); });
      },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "event_hub";

private:
  template <class Offer>
  void offer(Offer accepted) {
    auto dropped = std::erase_if(viewers_, [&](const subscribe& v) {
      auto keep = accepted(v);
      if (!keep)
        log::warn("viewer '" + v.name + "' was too slow and is dropped");
      return !keep;
    });
    if (dropped > 0)
      update_interest();
  }

  void update_interest() {
    bool any = false;
    for (auto& v : viewers_)
      any = any || static_cast<bool>(v.events);
    interest_->events = any;
  }

  caf::event_based_actor* self_;
  std::shared_ptr<hub_interest> interest_;
  std::vector<subscribe> viewers_;
};

}  // namespace

caf::actor spawn_event_hub(caf::actor_system& sys, std::shared_ptr<hub_interest> interest) {
  return sys.spawn<caf::stateful_actor<event_hub_state>>(std::move(interest));
}

}  // namespace troupe

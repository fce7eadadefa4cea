#include "actors/tool_host.hpp"

#include "actors/caf_glue.hpp"

#include <caf/stateful_actor.hpp>

namespace troupe {
namespace {

class tool_host_state {
public:
  explicit tool_host_state(caf::event_based_actor* self) : self_{self} {}

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [](const tool_call& x) {
        return tool_answer{x.context.call, x.tools->call(x.name, x.arguments, x.context)};
      },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "tool_host";

private:
  caf::event_based_actor* self_;
};

}  // namespace

caf::actor spawn_tool_host(caf::actor_system& sys, bool own_thread) {
  return own_thread ? sys.spawn<caf::stateful_actor<tool_host_state>, caf::detached>()
                    : sys.spawn<caf::stateful_actor<tool_host_state>>();
}

}  // namespace troupe

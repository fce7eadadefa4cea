#pragma once
// The only place that knows CAF's traps (each is explained where it is avoided), and the only one
// where CAF 0.18 and 1.x differ. Everything else uses their common subset.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <string>
#include <utility>

namespace troupe::glue {

/// Registers our message types. Before the first actor_system; once per process.
void init_types();

/// Worker threads, and max-throughput 50: by default one busy actor starves all others.
void configure(caf::actor_system_config& cfg, std::size_t threads);

/// One of our errors as CAF carries it in replies and exit reasons, and back.
[[nodiscard]] caf::error to_caf(const error& e);
[[nodiscard]] error from_caf(const caf::error& e);

/// True for the exit reasons that mean "it stopped by itself, or was told to".
[[nodiscard]] bool is_normal_exit(const caf::error& reason);

/// For every actor of ours: messages that the behaviour does not know are dropped (CAF would print
/// and bounce them), and an exception ends the actor with its text as the reason (CAF would print
/// it to the user's terminal).
void house_rules(caf::scheduled_actor* self);

/// Sends from any thread. A null handle is ignored.
template <class... Ts>
void post(const caf::actor& to, Ts&&... parts) {
  caf::anon_send(to, std::forward<Ts>(parts)...);
}

/// A handle that does not keep its actor alive, for callbacks that outlive it.
class weak_handle {
public:
  explicit weak_handle(caf::event_based_actor* self) : weak_{self->ctrl()} {}

  template <class... Ts>
  void post(Ts&&... parts) const {
    if (auto strong = weak_.lock())
      caf::anon_send(caf::actor_cast<caf::actor>(strong), std::forward<Ts>(parts)...);
  }

private:
  caf::weak_actor_ptr weak_;
};

/// Sends a message to oneself after a delay, through our timers: CAF's clock is quadratic in the
/// number of pending timeouts. The timer may be cancelled by its id.
template <class Message>
timer_id send_after(timers& clock, caf::event_based_actor* self, steady_clock::duration delay,
                    Message message) {
  return clock.in(delay, [to = weak_handle{self}, m = std::move(message)] { to.post(m); });
}

/// Has `make(reason)` sent to `self` when `other` ends, at once if it has ended already. Not a CAF
/// monitor: those leave 1.2 KB behind in `other` for each observer that died first.
template <class Make>
void watch(caf::event_based_actor* self, const caf::actor& other, Make make) {
  other->attach_functor([to = weak_handle{self}, make = std::move(make)](const caf::error& why) {
    to.post(make(why));
  });
}

}  // namespace troupe::glue

#pragma once
// Fans run events and batch progress out to viewers. A slow viewer is dropped, never waited for.

#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <memory>

namespace troupe {

/// Tells senders whether anybody looks, so that a batch without viewers pays nothing for them.
struct hub_interest {
  std::atomic<bool> events{false};
};

/// Understands subscribe, run_event, batch_progress and stop.
[[nodiscard]] caf::actor spawn_event_hub(caf::actor_system& sys,
                                         std::shared_ptr<hub_interest> interest);

}  // namespace troupe

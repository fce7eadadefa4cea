#pragma once
// The actor in front of the journal's thread: ordered appends, acknowledged when durable.

#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <memory>

namespace troupe {

class journal_thread;

/// Understands journal_append (reply: journal_durable, or the journal's error) and stop. Appends
/// are committed in the order in which they arrive, many in one transaction. `thread` outlives it.
[[nodiscard]] caf::actor spawn_journal_writer(caf::actor_system& sys, journal_thread& thread);

}  // namespace troupe

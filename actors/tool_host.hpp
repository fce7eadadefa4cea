#pragma once
// Runs native tools, one call at a time; several hosts share the work.

#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

namespace troupe {

/// Understands tool_call (reply: tool_answer) and stop. A tool that throws is answered as an error
/// and does not end the host. With a thread of its own the tools may block, else they promise not
/// to.
[[nodiscard]] caf::actor spawn_tool_host(caf::actor_system& sys, bool own_thread = false);

}  // namespace troupe

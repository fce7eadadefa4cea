#pragma once
// The actor around one live sandbox: it lives no longer than its owner, and closes exactly once.

#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <memory>

namespace troupe {

/// Understands snippet_run (reply: snippet_answer), tool_answer, sandbox_close (reply:
/// sandbox_closed) and stop. Sends tool_wanted and output_seen to `owner`, and sandbox_gone
/// {ticket, report} to `pool` when everything in the sandbox is verified gone; then it quits.
[[nodiscard]] caf::actor spawn_sandbox(caf::actor_system& sys, std::shared_ptr<sandbox> box,
                                       std::uint64_t ticket, caf::actor owner, caf::actor pool,
                                       bool live_output);

}  // namespace troupe

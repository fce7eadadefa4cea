#pragma once
// Gives native tool calls to whichever host is free: where tools block, none waits behind another
// while a host has nothing to do.

#include "actors/address.hpp"
#include "runtime/core/time.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// Understands tool_call (reply: tool_answer) and stop. First come, first served, one call at a
/// time for each host. A call whose host ends is answered with the host's error; what no host has
/// begun waits for a restart.
[[nodiscard]] caf::actor spawn_tool_dispatcher(caf::actor_system& sys,
                                               std::vector<std::shared_ptr<address>> hosts,
                                               timers& clock);

}  // namespace troupe

#pragma once
// Named agents with mailboxes. Each letter that one takes is a run of its own, in the conversation
// of all that it has taken before; one at a time. Letters come from the user and, by the tools of
// session_tools, from the other agents.

#include "actors/agent.hpp"
#include "runtime/agent/session_tools.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

struct session_member {
  session_member_card card;
  /// Its options' tools have those of session_tools among them.
  std::shared_ptr<const agent_context> agent;
};

struct session_plan {
  std::vector<session_member> members;
  /// Kept pointing at the session while it lives: what the members' contexts have in `served`.
  std::shared_ptr<address> where;
  std::string entry;  ///< the member that gets the task
  /// That agents may send in all; what they would send beyond is refused. With the budget of their
  /// job it bounds every circle of agents that write to each other.
  std::uint32_t max_letters = 200;
  std::size_t memory = 20;  ///< letters that a member remembers, with its answers
  millis time{0};           ///< of the whole session; 0: no limit
};

/// Spawns the session, to its owner a run like any: `own` has no manager, and its files are put
/// into every sandbox. run_start's
/// task is sent to the entry; its answer, by whomever it was handed on to, ends the session: what
/// still runs is cancelled. In run_finished stand that answer with its end, and what all runs
/// together have cost. `agents` is a simple_one_for_one supervisor. Understands run_start,
/// tool_call (from the members' runs), run_gate (for all of them), run_cancel and stop.
[[nodiscard]] caf::actor spawn_session(caf::actor_system& sys, session_plan plan, agent_run own,
                                       std::shared_ptr<address> agents);

}  // namespace troupe

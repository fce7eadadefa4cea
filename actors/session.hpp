#pragma once
// Named agents with mailboxes. Each letter that one takes is a run of its own, in the conversation
// of all that it has taken before; one at a time. Letters come from the user and, by the tools of
// session_tools, from the other agents.

#include "actors/agent.hpp"
#include "runtime/agent/session_tools.hpp"

#include <functional>
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
  std::string task;
  std::string sample;  ///< names the session in the journal
  /// That agents may send in all; what they would send beyond is refused. With the budget of their
  /// job it bounds every circle of agents that write to each other.
  std::uint32_t max_letters = 200;
  std::size_t memory = 20;  ///< letters that a member remembers, with its answers
  millis time{0};           ///< of the whole session; 0: no limit
  /// Hears the end once, on an actor's thread. Must not block.
  std::function<void(run_finished)> done;
  event_sink viewer{};  ///< sees all of it; may be empty
};

/// Spawns the session, which sends the task. `agents` is a simple_one_for_one supervisor. The
/// answer to the task, by whomever it was handed on to, ends the session: what still runs is
/// cancelled. In run_finished stand that answer with its end, the session's own id, and what all
/// runs together have cost. Understands tool_call (from the members' runs), run_cancel and stop.
[[nodiscard]] caf::actor spawn_session(caf::actor_system& sys, session_plan plan,
                                       std::shared_ptr<address> agents);

}  // namespace troupe

#pragma once
// Runs that are submitted one by one, by a program of which troupe is a part.

#include "actors/address.hpp"
#include "actors/agent.hpp"
#include "actors/messages.hpp"
#include "actors/session.hpp"

#include <caf/event_based_actor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One run that somebody wants.
struct run_order {
  run_id run;
  std::string sample;  ///< its name in the journal; unique there
  std::shared_ptr<const agent_context> agent;
  /// Of a session, which takes one place whatever its members do; `agent` is its entry's.
  std::optional<session_plan> session{};
  run_started input;
  std::vector<sandbox_file> files;
  event_sink viewer;    ///< as agent_run's
  bool paused = false;  ///< as agent_run's
  /// Hears the end, once, on any thread. Must not block or throw.
  std::function<void(run_result)> done;
};

struct runs_options {
  std::size_t max_concurrency = 64;   ///< runs at once; the others wait for a place
  std::size_t max_waiting = 100'000;  ///< of them; one more ends at once as an error
};

/// Spawns the actor that starts submitted runs as children of `agents`, a simple_one_for_one
/// supervisor. Understands run_submit, run_call_off, run_gate and stop, which cancels all and quits
/// when they have ended. Each order's `done` is called also when this actor or a run's agent
/// crashes: nothing is run twice, since a run may have had effects.
[[nodiscard]] caf::actor spawn_runs(caf::actor_system& sys, std::shared_ptr<address> agents,
                                    const runs_options& options);

}  // namespace troupe

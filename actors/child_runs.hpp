#pragma once
// The runs that one run has its managed agents do: started, heard, cancelled with it.

#include "actors/agent.hpp"
#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <functional>
#include <string_view>
#include <unordered_map>

namespace troupe {

/// The run that has ended so.
[[nodiscard]] run_id run_of(const child_ended& x);

/// A part of the manager's actor: its owner passes on run_finished and child_ended.
class child_runs {
public:
  /// How the call ended, and what it has cost: nothing for one that never began.
  using done_fn = std::function<void(result<json> outcome, const run_finished& end)>;

  child_runs(caf::event_based_actor* self, std::shared_ptr<const agent_context> manager);

  /// The managed agent of that name, or null.
  [[nodiscard]] const managed_agent* find(std::string_view name) const;

  /// Starts a run of `who`; `done` is called once. `time_left` 0: no limit.
  void begin(const managed_agent& who, agent_run own, std::string task, millis time_left,
             done_fn done);

  /// Tells all to end; their ends still come.
  void cancel(const std::string& reason);

  [[nodiscard]] bool any() const noexcept { return !open_.empty(); }

  void on_finished(const run_finished& x);
  void on_ended(const child_ended& x);

private:
  struct open_run {
    const managed_agent* who = nullptr;
    caf::actor agent;
    std::optional<std::string> cancelled;  ///< why, when that was before it began
    done_fn done;
  };

  void on_started(run_id run, const caf::actor& agent, std::string task, millis time_left);
  void over(run_id run, const result<json>& outcome, const run_finished& end);

  caf::event_based_actor* self_;
  std::shared_ptr<const agent_context> manager_;
  std::unordered_map<run_id, open_run> open_;
};

}  // namespace troupe

#pragma once
// The calls of a run: of its loop and of its code, to tools and to managed agents.

#include "actors/child_runs.hpp"
#include "actors/snippet_runs.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// A part of a run's actor. Answers to the loop's calls are its events; those to the code's go back
/// into the sandbox that asked, durable first.
class run_calls {
public:
  /// `code` is where the run's code is.
  run_calls(run_core& core, const snippet_runs& code);

  /// Of the loop, by leave of the hooks.
  void begin(call_tool x);

  /// Of code.
  void on_wanted(tool_wanted x);

  /// What the run's actor hears of its managed agents.
  void on_finished(const run_finished& x);
  void on_ended(const child_ended& x);

  /// Tells managed agents to end; their ends still come.
  void cancel_children(const std::string& reason);

  /// Ends managed agents that still run. `then` hears how the run ends, with what they have cost
  /// in it: at once when there are none.
  void end_children(finish how, std::function<void(finish)> then);

private:
  struct last_words {
    finish how;
    std::function<void(finish)> then;
  };

  void call(call_tool x, std::uint32_t tries);
  void call_for_code(tool_wanted x);
  [[nodiscard]] const managed_agent* member(const std::string& tool) const;
  void start_child(const managed_agent& who, call_id call, const json& arguments, caf::actor box);
  [[nodiscard]] agent_run child_run(run_id run, call_id call) const;
  [[nodiscard]] millis time_left() const;
  void on_child_end(const caf::actor& box, tool_replied reply, const std::string& tool,
                    const run_finished& end);
  void settle(const caf::actor& box, tool_replied reply, const std::string& tool);
  [[nodiscard]] caf::actor host_for(const std::string& tool);
  template <class Then>
  void ask_host(const caf::actor& host, call_id id, const std::string& tool, json arguments,
                const Then& then);

  run_core& core_;
  const snippet_runs& code_;
  std::unique_ptr<child_runs> children_;  // null: there is nobody to call
  std::unique_ptr<last_words> ending_;    // while they end
  std::size_t next_host_;
};

/// As an event of the journal.
void keep_call(run_log::collector& kept, call_id id, const std::string& tool,
               const json& arguments);

}  // namespace troupe

#pragma once
// The agents that an agent file names as children, at every depth: checked and defined before
// anything starts, then made ready to be called.

#include "config/agent_file.hpp"
#include "runtime/host/assemble.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// One managed agent and those below it.
struct team_member {
  settings options;
  profile_settings profile;
  std::shared_ptr<const tool_set> tools;
  std::shared_ptr<const agent_definition> agent;
  std::vector<team_member> team;
};

/// The children of the file that `manager` came from; none without one. A child's file says what is
/// its own (the options of agents and of sampling); model, sandbox and all else are its manager's.
/// Errors  invalid_argument, with the child's place: an option that is the same for a whole team,
///         what agent_from refuses; not_found: a tool.
[[nodiscard]] result<std::vector<team_member>> read_team(const settings& manager,
                                                         const env_lookup& env);

/// The same as their manager's `agent_options.managed`.
[[nodiscard]] std::vector<tool_spec> managed_tools(const std::vector<team_member>& team);

/// True when one of them, or of those below, writes code.
[[nodiscard]] bool writes_code(const std::vector<team_member>& team);

/// Levels of agents below the agent of that file; 0 for null.
[[nodiscard]] std::uint32_t levels_below(const agent_file* file);

/// As engine::make_context wants them.
/// Errors  invalid_argument: a name that no tool may have.
[[nodiscard]] result<std::vector<managed_agent>> start_team(const engine& host,
                                                            const std::vector<team_member>& team);

}  // namespace troupe

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
  engine_model model{};  ///< find_models'
};

/// The children of the file that `manager` came from; none without one. A child's file says what is
/// its own, of the agent and of its model; sandbox and all else are its manager's.
/// Errors  invalid_argument, with the child's place: an option that is the same for a whole team,
///         what agent_from refuses; not_found: a tool.
[[nodiscard]] result<std::vector<team_member>> read_team(const settings& manager,
                                                         const env_lookup& env);

/// The same as their manager's `agent_options.managed`.
[[nodiscard]] std::vector<tool_spec> managed_tools(const std::vector<team_member>& team);

/// Makes their models ready; those that are the same will have one client.
/// Errors  model_from's, with the file's name.
[[nodiscard]] result<void> find_models(std::vector<team_member>& team, const env_lookup& env);

/// True when one of them, or of those below, writes code.
[[nodiscard]] bool writes_code(const std::vector<team_member>& team);

/// Levels of agents below the agent of that file; 0 for null.
[[nodiscard]] std::uint32_t levels_below(const agent_file* file);

/// The sandbox of a manager: `own`, with what the code of its agents needs in it where it lends it
/// to them.
/// Errors  invalid_argument, when it is lent: the manager writes code itself, none of its agents
///         does, or they differ in what they may import, or in a tool.
[[nodiscard]] result<sandbox_spec> sandbox_of_team(sandbox_spec own, const agent_options& manager,
                                                   const std::vector<managed_agent>& team);

/// As engine::make_context wants them; their models are added to the engine.
/// Errors  invalid_argument: a name that no tool may have; engine::add_model's.
[[nodiscard]] result<std::vector<managed_agent>> start_team(engine& host,
                                                            const std::vector<team_member>& team);

}  // namespace troupe

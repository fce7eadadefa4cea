#pragma once
// What must stay the same for the results of several sessions to be one batch.

#include "config/options.hpp"
#include "runtime/host/team.hpp"

#include <string>

namespace troupe {

/// Errors  invalid_argument: an option that decides on the results was another one, with both
///         values. `before` and `now` are to_json()'s of settings, `path` the journal's. Options
///         that name a
/// file count unless there is a digest of what these say (`by_contents`).
[[nodiscard]] result<void> check_same_options(const json& before, const json& now,
                                              const std::string& path, bool by_contents);

/// Of the batch's record, for digest_of_agents().
inline constexpr const char* agent_digest_key = "agents_sha256";

/// SHA-256 over what the agent and those that it may call are told and may do: prompts,
/// instructions, answer schemas, and the options as above of each of the team.
[[nodiscard]] std::string digest_of_agents(const agent_definition& agent,
                                           const std::vector<team_member>& team);

/// Errors  invalid_argument: `record`, of the journal at `path`, has another digest.
[[nodiscard]] result<void> check_same_agent(const json& record, const std::string& digest,
                                            const std::string& path);

}  // namespace troupe

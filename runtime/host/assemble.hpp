#pragma once
// From settings to parts: the one place that reads configuration and knows which part it means.

#include "actors/agent.hpp"
#include "config/options.hpp"
#include "config/profile_file.hpp"
#include "runtime/host/engine.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Sizes and limits of a runtime whose sandboxes are of `profile`; its models and its budget are
/// models.hpp's.
[[nodiscard]] engine_options engine_options_from(const settings& s, const sandbox_profile& profile,
                                                 const env_lookup& env, bool live_output);

/// What one run may spend.
[[nodiscard]] budget_limits run_budget_from(const settings& s);

/// The profile that the settings name, with what they say otherwise.
/// Errors  find_profile's; invalid_argument: the executor cannot give what the profile demands.
[[nodiscard]] result<profile_settings> profile_from(const settings& s);

/// How to make the executor.
/// Errors  invalid_argument: an executor that does not exist.
[[nodiscard]] result<engine::make_executor> executor_from(const settings& s,
                                                          const sandbox_profile& profile);

/// The tools by their names, final_answer among them.
/// Errors  not_found: the nearest name.
[[nodiscard]] result<std::shared_ptr<const tool_set>> tools_from(const settings& s);

[[nodiscard]] agent_kind kind_from(const settings& s);

/// What makes the agent: its prompts are those of a file, or the agent file's, over the shipped
/// ones; `team` are the agents that it manages, as tools.
/// Errors  those of reading prompts; invalid_argument: extra_body.
[[nodiscard]] result<agent_options> agent_options_from(const settings& s, const tool_set& tools,
                                                       const std::vector<std::string>& imports,
                                                       const env_lookup& env,
                                                       std::vector<tool_spec> team = {});

/// define_agent, whose errors about a prompt say in which file and line it stands.
[[nodiscard]] result<std::shared_ptr<const agent_definition>>
define_agent_of(const settings& s, agent_options options);

/// Both.
[[nodiscard]] result<std::shared_ptr<const agent_definition>>
agent_from(const settings& s, const tool_set& tools, const std::vector<std::string>& imports,
           const env_lookup& env, std::vector<tool_spec> team = {});

[[nodiscard]] sandbox_spec sandbox_from(const profile_settings& profile, const tool_set& tools);

/// Opens one sandbox and closes it: what is wrong with the machine or the spec is found before the
/// first model call is paid. Blocks, at most the spec's open_timeout and a little.
/// Errors  the executor's.
[[nodiscard]] result<void> try_sandbox(executor& backend, sandbox_spec spec);

/// Cores, memory, kernel, versions and isolation, for the batch record.
[[nodiscard]] json machine_record(const executor* backend);

}  // namespace troupe

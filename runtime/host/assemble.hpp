#pragma once
// From settings to parts: the one place that reads configuration and knows which part it means.

#include "actors/agent.hpp"
#include "config/options.hpp"
#include "config/profile_file.hpp"
#include "runtime/host/engine.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Sizes and limits of a runtime whose sandboxes are of `profile`, from the options; its proxies
/// and CA file from the variables too.
[[nodiscard]] engine_options engine_options_from(const settings& s, const sandbox_profile& profile,
                                                 const env_lookup& env, bool live_output);

/// How to make the model's endpoint; reads the key's variable and the mock's script now, so that a
/// missing one is found before anything starts.
/// Errors  those of parse_model_name, parse_url and mock_script::parse, with the option named; the
///         proxy or the CA file that the endpoint needs cannot be used.
[[nodiscard]] result<engine::make_endpoint> endpoint_from(const settings& s, const env_lookup& env);

/// Sets the options' shelf, if the settings ask for a cache or a recording.
/// Errors  invalid_argument: more than one of them; those of opening the file, or of the model's
///         name.
[[nodiscard]] result<void> add_shelf(engine_options& options, const settings& s,
                                     const env_lookup& env);
/// The other addresses of the model, and its fallbacks in their order.
/// Errors  as endpoint_from; invalid_argument: a fallback that speaks another wire format.
[[nodiscard]] result<std::vector<other_endpoint>> other_endpoints_from(const settings& s,
                                                                       const env_lookup& env);

/// Puts the budget and the prices of all models into `into`, which has its `others` already.
/// Errors  read_prices'; invalid_argument: a limit on money, and a model that has no price.
[[nodiscard]] result<void> add_budget(const settings& s, engine_options& into);

/// The limits on the model that may change while it is in use.
[[nodiscard]] model_tune limits_from(const settings& s);

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
/// ones.
/// Errors  those of reading prompts; invalid_argument: extra_body; an agent file with children.
[[nodiscard]] result<agent_options> agent_options_from(const settings& s, const tool_set& tools,
                                                       const std::vector<std::string>& imports,
                                                       const env_lookup& env);

/// define_agent, whose errors about a prompt say in which file and line it stands.
[[nodiscard]] result<std::shared_ptr<const agent_definition>>
define_agent_of(const settings& s, agent_options options);

/// Both.
[[nodiscard]] result<std::shared_ptr<const agent_definition>>
agent_from(const settings& s, const tool_set& tools, const std::vector<std::string>& imports,
           const env_lookup& env);

[[nodiscard]] sandbox_spec sandbox_from(const profile_settings& profile, const tool_set& tools);

/// Opens one sandbox and closes it: what is wrong with the machine or the spec is found before the
/// first model call is paid. Blocks, at most the spec's open_timeout and a little.
/// Errors  the executor's.
[[nodiscard]] result<void> try_sandbox(executor& backend, sandbox_spec spec);

/// Cores, memory, kernel, versions and isolation, for the batch record.
[[nodiscard]] json machine_record(const executor* backend);

}  // namespace troupe

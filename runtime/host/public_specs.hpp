#pragma once
// What a program gives the embedding API, in the words of the parts: options, tools, checks, hooks.

#include "config/options.hpp"
#include "runtime/agent/agent_options.hpp"
#include "runtime/journal/journal.hpp"
#include "runtime/policy/hooks.hpp"
#include "tools/tool.hpp"
#include <troupe/runtime.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace troupe {

[[nodiscard]] bool is_of_models(std::string_view option);

/// As options of the table, which say where they were given.
[[nodiscard]] std::vector<option_input> inputs_of(const runtime_options& o);

/// Errors  invalid_argument: an option that is the same for all agents of a runtime.
[[nodiscard]] result<std::vector<option_input>> inputs_of(const agent_spec& spec);

/// Those that the settings name, and the program's own.
/// Errors  tools_from's; invalid_argument: a tool that cannot be added to them.
[[nodiscard]] result<std::shared_ptr<const tool_set>> all_tools(const settings& s,
                                                                std::vector<native_tool> own);

[[nodiscard]] std::vector<final_check> checks_of(std::vector<answer_check> checks);

/// Errors  invalid_argument: a point that there is not, and what validate refuses.
[[nodiscard]] result<std::shared_ptr<const std::vector<run_hook>>>
hooks_of(const std::vector<hook>& given);

[[nodiscard]] run_outcome outcome_of(const run_result& r);

}  // namespace troupe

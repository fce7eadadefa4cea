#pragma once
// An agent as another agent's tool: what its manager's model is told, the task that a call gives
// it, and what the call comes to. Each call is a run of its own, with a memory of its own.

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/events.hpp"
#include "runtime/model/tool_spec.hpp"

#include <string>

namespace troupe {

/// The tool that a manager calls. Parameters: `task` (string) and `additional_args` (object, may be
/// left out), as smolagents has them. Its time is not that of the snippet that calls it.
[[nodiscard]] tool_spec managed_agent_tool(const agent_options& agent);

/// The child run's task: its own managed_agent.task prompt around what the manager wrote, with the
/// additional arguments as JSON beneath. `arguments` fit managed_agent_tool.
[[nodiscard]] std::string managed_task(const agent_definition& child, const json& arguments);

/// What the manager gets: a text in the child's managed_agent.report prompt, any other answer as it
/// is (plain JSON). A forced answer is called one.
/// Errors  by the child's end: cancelled, timeout (deadline), over_budget (budget), unavailable
///         (error, max_steps without an answer, stuck); the detail names the child, the end and
///         why.
[[nodiscard]] result<json> managed_outcome(const agent_definition& child, const finish& end);

}  // namespace troupe

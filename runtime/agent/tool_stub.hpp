#pragma once
// How an agent is told about a tool: as a Python function without its body, or in words.

#include "runtime/model/tool_spec.hpp"

#include <string>

namespace troupe {

/// A `def` with annotations, defaults and a docstring that describes the tool, its arguments and,
/// where the tool states it, the schema of its result.
/// Types are Python's; a schema's enum becomes Literal, a union `a | b`.
[[nodiscard]] std::string tool_stub(const tool_spec& tool);

/// Name, description, the JSON Schema of the arguments and the type of the result, with its schema
/// where the tool states it, for a model that calls tools.
[[nodiscard]] std::string tool_summary(const tool_spec& tool);

/// A JSON value as Python writes it: None, True, 'text', [1, 2].
[[nodiscard]] std::string python_literal(const ordered_json& value);

}  // namespace troupe

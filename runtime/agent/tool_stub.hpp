#pragma once
// How a code agent is told about a tool: a Python function without its body.

#include "runtime/model/tool_spec.hpp"

#include <string>

namespace troupe {

/// A `def` with annotations, defaults and a docstring that describes the tool and its arguments.
/// Types are Python's; a schema's enum becomes Literal, a union `a | b`.
[[nodiscard]] std::string tool_stub(const tool_spec& tool);

/// A JSON value as Python writes it: None, True, 'text', [1, 2].
[[nodiscard]] std::string python_literal(const ordered_json& value);

}  // namespace troupe

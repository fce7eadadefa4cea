#pragma once
// Which names Python lets a tool or an agent have.

#include <string_view>

namespace troupe {

/// True for an ASCII identifier of 1 to 64 bytes: what Python and every provider accept.
[[nodiscard]] bool is_python_identifier(std::string_view name) noexcept;

/// True for a hard keyword of Python 3.
/// Source  The Python Language Reference, 2.3.1 "Keywords".
[[nodiscard]] bool is_python_keyword(std::string_view name) noexcept;

/// True for a function or constant that every module sees; shadowing it breaks ordinary code.
/// Source  The Python Standard Library, "Built-in Functions" and "Built-in Constants".
[[nodiscard]] bool is_python_builtin(std::string_view name) noexcept;

}  // namespace troupe

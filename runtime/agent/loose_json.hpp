#pragma once
// JSON as models write it: with prose around it, and line breaks inside its texts.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Past the bracket that closes the one at `at`; npos when there is none.
[[nodiscard]] std::size_t end_of_value(std::string_view text, std::size_t at);

/// The text with the line breaks and tabs inside JSON's texts escaped, as JSON demands.
[[nodiscard]] std::string with_escaped_breaks(std::string_view text);

/// The value that is the text, a Markdown fence and white space around it apart; else the first
/// object or array in it.
/// Errors  corrupt: there is none, it is not complete, or where it cannot be read.
[[nodiscard]] result<json> json_in(std::string_view text);

}  // namespace troupe

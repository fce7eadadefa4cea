#pragma once
// What the model is told about the end of its code, or of its calls.

#include "runtime/agent/snippet.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Bytes shown of each part, and of all of them together; more is cut in its middle, with a notice.
struct observation_limits {
  std::size_t log_bytes = 50'000;
  std::size_t value_bytes = 20'000;
  std::size_t error_bytes = 10'000;
  std::size_t all_bytes = 1u << 20;
};

/// The text of the message that follows the model's code: "Observation:", then what was printed and
/// the last value; after a failure what was printed first, then "Error:" with type, message, line
/// and failing segment, what became of the session's variables, and a nudge. `code` is what ran;
/// `outcome` may be of any end but not_code.
[[nodiscard]] std::string observation_text(const snippet_outcome& outcome, std::string_view code,
                                           const observation_limits& limits);

/// The same for code that ran, and printed `logs`, but whose answer was refused for `why`.
[[nodiscard]] std::string refusal_text(const snippet_outcome& outcome, std::string_view why,
                                       const observation_limits& limits);

/// The same for an answer that was given by a call: "Error:" and `why`.
[[nodiscard]] std::string refusal_text(std::string_view why, std::size_t max_bytes);

/// A JSON value as UTF-8 text: a text as it is, anything else as JSON.
[[nodiscard]] std::string plain_text(const json& value);

/// The same as the model reads it of a tool: of more than `max_bytes` the middle is cut, with a
/// notice. Never empty, since some servers refuse that.
[[nodiscard]] std::string tool_text(const json& value, std::size_t max_bytes);

/// "Error:" with the kind and the detail of a call's failure, the call as it was made, and a nudge.
[[nodiscard]] std::string call_error_text(const error& why, std::string_view tool,
                                          std::string_view arguments, std::size_t max_bytes);

/// An "Error:" message without any code having run.
[[nodiscard]] std::string error_text(std::string_view what);

}  // namespace troupe

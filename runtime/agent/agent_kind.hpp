#pragma once
// How an agent acts, and how its model is asked for calls.

#include <cstdint>
#include <string_view>

namespace troupe {

enum class agent_kind : std::uint8_t {
  code,         ///< writes Python, which runs in a sandbox
  tool_calling  ///< calls tools, one or several in a turn; needs no sandbox
};

/// How a tool-calling agent and its model speak about calls.
enum class call_protocol : std::uint8_t {
  native,  ///< the provider's own: schemas in the request, roles and call ids in the messages
  text     ///< JSON in the reply's text, results as a user message: for models without tools
};

/// "code", "tool_calling".
[[nodiscard]] constexpr std::string_view to_string(agent_kind kind) noexcept {
  return kind == agent_kind::code ? "code" : "tool_calling";
}

/// "native", "text".
[[nodiscard]] constexpr std::string_view to_string(call_protocol protocol) noexcept {
  return protocol == call_protocol::native ? "native" : "text";
}

}  // namespace troupe

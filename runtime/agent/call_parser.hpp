#pragma once
// What a model's calls of tools say: arguments as JSON, and whole calls in a reply's text. Whether
// a tool exists and takes the arguments is not asked here.

#include "runtime/agent/agent_kind.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"
#include "runtime/model/tool_spec.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A longer name is cut: it is nobody's.
constexpr std::size_t max_tool_name_bytes = 200;

/// One call as it was meant.
struct wanted_call {
  std::string tool{};
  json arguments{};     ///< usually an object; null for none
  std::string shown{};  ///< the arguments as the model wrote them, UTF-8
  std::string error{};  ///< why it must not be carried out; empty: it may be
};

struct parsed_calls {
  std::vector<wanted_call> calls{};
  std::string error{};  ///< without calls: what was wrong with JSON that might have been one
};

/// The arguments of a native call. JSON in a JSON text, as some models write it, is read once more;
/// any other value stays as it is. No text at all means no arguments: {}.
/// Errors  corrupt: not JSON, or cut short, with the place. Such a call must not be carried out.
[[nodiscard]] result<json> decoded_arguments(std::string_view text);

/// The calls in a reply's text, which has no think blocks: JSON objects with a name ("name",
/// "tool", "tool_name", "function", "action") and arguments ("arguments", "args", "parameters",
/// "input", "action_input", "tool_input": a value, or a text that holds one), alone, in an array,
/// or as OpenAI wraps them; with prose, fences and tags around them. Where a line begins with
/// "Action:" only what follows counts, if there is a call. Line breaks inside JSON's texts are
/// taken. Units   linear in the text.
[[nodiscard]] parsed_calls calls_in_text(std::string_view text);

/// What the model is told when its reply held no call: the way to call, and to answer by
/// `answer_tool` when it seems to have meant an answer. `why` is what was found instead, or "".
[[nodiscard]] std::string no_call_error(std::string_view reply, std::string_view why,
                                        call_protocol protocol, const tool_spec& answer_tool);

}  // namespace troupe

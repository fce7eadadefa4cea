#pragma once
// Replies and failures as JSON and back: the form that journals, caches and cassettes keep them in.

#include "runtime/model/chat.hpp"

#include <vector>

namespace troupe {

[[nodiscard]] json to_json(const token_usage& x);
[[nodiscard]] json to_json(const tool_call_message& x);
[[nodiscard]] json to_json(const std::vector<tool_call_message>& calls);
[[nodiscard]] json to_json(const model_reply& x);
[[nodiscard]] json to_json(const model_failure& x);

/// Errors of all  corrupt: which member, and what was expected.
[[nodiscard]] result<token_usage> usage_from_json(const json& j);
[[nodiscard]] result<tool_call_message> tool_call_from_json(const json& j);
[[nodiscard]] result<model_reply> reply_from_json(const json& j);
[[nodiscard]] result<model_failure> failure_from_json(const json& j);

}  // namespace troupe

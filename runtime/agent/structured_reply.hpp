#pragma once
// Replies of a code agent that are JSON: {"thought": ..., "code": ...}.

#include "runtime/agent/code_parser.hpp"
#include "runtime/core/error.hpp"
#include "runtime/model/chat.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// What the provider is asked to hold such replies to.
[[nodiscard]] output_schema thought_and_code();

/// The code in such a reply, without think blocks, and without the tags or the fence that some
/// models put around it all the same.
/// Errors  corrupt: why the reply is none, for the model.
[[nodiscard]] result<std::string> structured_code(std::string_view reply, const code_tags& tags);

/// What the model is told when its reply held no code in any form; `why` is structured_code's.
[[nodiscard]] std::string structured_error(std::string_view reply, std::string_view why);

}  // namespace troupe

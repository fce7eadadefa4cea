#pragma once
// Chat completions' replies as nearly all of them are, read without building their JSON value: its
// nodes were a quarter of what a call cost the client.

#include "runtime/model/chat.hpp"

#include <optional>
#include <string_view>

namespace troupe::openai {

/// The value of read_reply() for a body that has a text, calls with arguments as text, and nothing
/// beside them that has to go back. Empty for any other, and for what is no reply: read_reply()
/// understands more, and says what is wrong.
[[nodiscard]] std::optional<model_reply> read_plain_reply(std::string_view body);

}  // namespace troupe::openai

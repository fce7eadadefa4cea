#pragma once
// What the parts of the chat completions codec share; others use codec.hpp.

#include "runtime/model/codec.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace troupe::openai {

[[nodiscard]] encoder_state encode_message(std::string& out, const chat_message& message,
                                           encoder_state before);

/// Everything before the first message. See openai_chat.cpp for the choice of members.
[[nodiscard]] std::string encode_head(const model_settings& settings, const codec_options& options,
                                      delivery how);

/// The reply in a response object.
[[nodiscard]] model_outcome read_reply(const json& body);

/// Builds the response object of the same reply in one piece, and reads that.
[[nodiscard]] std::unique_ptr<reply_assembler> make_chat_assembler();

/// True for OpenAI's own models, whose newer ones refuse max_tokens. gpt-oss is served by others.
[[nodiscard]] bool is_own_model(std::string_view model);

/// True for those of them that refuse "stop".
[[nodiscard]] bool refuses_stop(std::string_view model);

}  // namespace troupe::openai

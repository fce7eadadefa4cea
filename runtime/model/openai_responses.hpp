#pragma once
// What the parts of the Responses codec share; others use codec.hpp.

#include "runtime/model/codec.hpp"

#include <memory>
#include <string>

namespace troupe::responses {

/// Writes one item or several: a message, and one per tool call.
[[nodiscard]] encoder_state encode_message(std::string& out, const chat_message& message,
                                           encoder_state before);

/// Everything before the first item. Nothing is stored with the provider: each request has the
/// whole conversation, and the reasoning of OpenAI's own models comes and goes encrypted.
[[nodiscard]] std::string encode_head(const model_settings& settings, delivery how);

/// The reply in a response object.
[[nodiscard]] model_outcome read_reply(const json& body);

/// Takes the response object from the event that ends the stream, or builds it from its items.
[[nodiscard]] std::unique_ptr<reply_assembler> make_response_assembler();

}  // namespace troupe::responses

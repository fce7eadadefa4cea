#pragma once
// What the parts of the Anthropic codec share; others use codec.hpp.

#include "runtime/model/codec.hpp"

#include <memory>
#include <string>

namespace troupe::anthropic {

/// Writes members of the request's object: "system", whose blocks stand in front, and "messages".
/// Both stay open: messages of one turn, such as all results of its tool calls, are blocks of one
/// message, and what comes next may be one more. `closing` ends them.
[[nodiscard]] encoder_state encode_message(std::string& out, const chat_message& message,
                                           encoder_state before);

/// The same, with a cache mark on the first system block: what stands before it, the tools
/// included, and the block itself are the same for all runs of an agent.
[[nodiscard]] encoder_state encode_marked_message(std::string& out, const chat_message& message,
                                                  encoder_state before);

/// What ends the members that encode_message has left open in that state.
[[nodiscard]] std::string_view closing(encoder_state state);

/// Everything before those members. max_tokens, which must be sent, is 8192 when nothing is set.
/// With options.prompt_cache the last tool has a cache mark, for agents that share their tools
/// alone, and so has the request as a whole: that one the server puts on the last message.
/// Source  Anthropic API reference, "Messages": cache_control; "Prompt caching": four marks at
/// most.
[[nodiscard]] std::string encode_head(const model_settings& settings, const codec_options& options,
                                      delivery how);

/// The reply in a message object.
[[nodiscard]] model_outcome read_reply(const json& body);

/// Builds the message object of the same reply in one piece, and reads that.
[[nodiscard]] std::unique_ptr<reply_assembler> make_message_assembler();

}  // namespace troupe::anthropic

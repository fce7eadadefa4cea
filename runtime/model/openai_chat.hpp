#pragma once
// What the parts of the OpenAI codec share; others use codec.hpp.

#include "runtime/core/json.hpp"
#include "runtime/model/codec.hpp"

#include <string>
#include <string_view>

namespace troupe::openai {

void encode_message(std::string& out, const chat_message& message);

/// Everything before the first message. See openai.cpp for the choice of members.
[[nodiscard]] std::string encode_head(const model_settings& settings);

[[nodiscard]] tl::expected<model_reply, model_failure> decode(std::string_view body);

[[nodiscard]] model_failure classify(unsigned status, const header_list& headers,
                                     std::string_view body);

/// An error object as servers send it, wherever it stands.
struct server_error {
  std::string message;
  std::string code;     ///< code, or else type; text even where the server sent a number
  unsigned status = 0;  ///< the code, where that is an HTTP status
};

/// Reads {"error": {...} | "text"}, [{"error": ...}], {"message"}, {"detail"}; empty members when
/// there is none of these.
[[nodiscard]] server_error read_error(const json& body);

/// What an HTTP status, or a server's own word for the same thing, asks of us.
[[nodiscard]] failure_class class_of(unsigned status, const server_error& error);

}  // namespace troupe::openai

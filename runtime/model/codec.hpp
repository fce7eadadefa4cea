#pragma once
// A provider's wire format as pure functions: request bytes out, reply or failure in. No sockets.

#include "runtime/model/chat.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// A request body in pieces that are written one after the other; the middle one is shared with
/// the transcript and is not copied.
struct encoded_request {
  std::string head;
  transcript_view messages;
  std::string tail;

  [[nodiscard]] std::size_t bytes() const { return head.size() + messages.size + tail.size(); }
};

/// Stateless; one constant object per wire format.
class codec {
public:
  virtual ~codec() = default;

  [[nodiscard]] virtual message_encoder encoder() const = 0;

  /// The path below the endpoint's base URL, e.g. "/chat/completions".
  [[nodiscard]] virtual std::string_view path() const = 0;

  [[nodiscard]] virtual encoded_request encode(const model_request& request) const = 0;

  /// Headers that carry the key; empty for an empty key.
  [[nodiscard]] virtual header_list authorize(std::string_view key) const = 0;

  /// A call without arguments has "{}"; one without an id gets "call_<n>", n from 0.
  /// Errors  a model_failure of kind bad_reply that says in one line what was wrong with the body,
  ///         or of the kind that an error object inside a 200 names by its own code.
  [[nodiscard]] virtual tl::expected<model_reply, model_failure>
  decode(std::string_view body) const = 0;

  /// What a status other than 2xx means. Header names in `headers` are lower case.
  [[nodiscard]] virtual model_failure classify(unsigned status, const header_list& headers,
                                               std::string_view body) const = 0;
};

/// OpenAI's chat completions, with the deviations of compatible servers tolerated.
/// max_output_tokens is sent as max_completion_tokens to OpenAI's own models (gpt-*, o1, o3, ...,
/// chatgpt-*, with any "vendor/" before; not gpt-oss), as max_tokens, which all compatible servers
/// know, to all others. A member of extra_body replaces ours of that name, null removes it;
/// "messages" and "stream" in it are not sent.
/// Source  OpenAI API reference, "Create chat completion"; see runtime/model/openai.cpp.
[[nodiscard]] const codec& openai_codec();

}  // namespace troupe

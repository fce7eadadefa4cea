#pragma once
// One maker per wire format, and what more than one of them puts into a request's head.

#include "runtime/model/codec.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace troupe {

[[nodiscard]] std::shared_ptr<const codec> make_chat_codec(const codec_options& options);
[[nodiscard]] std::shared_ptr<const codec> make_responses_codec(const codec_options& options);
[[nodiscard]] std::shared_ptr<const codec> make_anthropic_codec(const codec_options& options);

/// The key as OpenAI's services take it: a bearer token, or Azure's api-key. None for an empty key.
[[nodiscard]] header_list openai_key(std::string_view key, bool azure);

/// Text as one segment of a path or a query's value. Source  RFC 3986, section 2.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace troupe

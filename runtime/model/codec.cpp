#include "runtime/model/codec.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/codecs.hpp"
#include "runtime/model/server_error.hpp"

namespace troupe {

model_failure codec::classify(unsigned status, const header_list& headers,
                              std::string_view body) const {
  return classify_status(status, headers, body);
}

std::shared_ptr<const codec> make_codec(const codec_options& options) {
  switch (options.wire) {
  case wire_format::openai_responses:
    return make_responses_codec(options);
  case wire_format::anthropic:
    return make_anthropic_codec(options);
  case wire_format::openai_chat:
    break;
  }
  return make_chat_codec(options);
}

header_list openai_key(std::string_view key, bool azure) {
  key = trim(key);  // keys read from files end in a newline
  if (key.empty())
    return {};
  if (azure)
    return {{"api-key", std::string{key}}};
  return {{"authorization", "Bearer " + std::string{key}}};
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::string_view plain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (auto c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (plain.find(c) != std::string_view::npos)
      out += c;
    else
      out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

}  // namespace troupe

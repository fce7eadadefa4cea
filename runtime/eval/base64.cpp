#include "runtime/eval/base64.hpp"

#include <cstdint>

namespace troupe {
namespace {

constexpr std::string_view alphabet =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::size_t data_begin(std::string_view text) {
  if (!text.starts_with("data:"))
    return std::string_view::npos;
  auto comma = text.find(',');
  constexpr std::string_view mark = ";base64";
  if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(mark))
    return std::string_view::npos;
  return comma + 1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  auto padded = text.size();
  while (!text.empty() && text.back() == '=' && padded - text.size() < 2)
    text.remove_suffix(1);
  if ((padded != text.size() && padded % 4 != 0) || text.size() % 4 == 1)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int held = 0;
  for (auto c : text) {
    auto digit = alphabet.find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 0xFF);
    }
  }
  return bytes;
}

bool is_data_uri(std::string_view text) {
  return data_begin(text) != std::string_view::npos;
}

std::optional<std::string> decode_data_uri(std::string_view text) {
  auto begin = data_begin(text);
  return begin == std::string_view::npos ? std::nullopt : decode_base64(text.substr(begin));
}

}  // namespace troupe

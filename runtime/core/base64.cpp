#include "runtime/core/base64.hpp"

#include <array>
#include <cstdint>

namespace troupe {
namespace {

constexpr std::string_view alphabet =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t no_digit = 0xFF;

constexpr std::array<std::uint8_t, 256> digit_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}

constexpr auto digit_of = digit_values();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    auto part = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = (bits << 8) | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= part.size() ? alphabet[(bits >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

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
    auto digit = digit_of[static_cast<unsigned char>(c)];
    if (digit == no_digit)
      return std::nullopt;
    bits = (bits << 6) | digit;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 0xFF);
    }
  }
  return bytes;
}

}  // namespace troupe

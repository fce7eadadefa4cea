#include "executors/base64.hpp"

#include <cstdint>

namespace troupe {

std::string to_base64(std::string_view bytes) {
  static constexpr char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

}  // namespace troupe

#include "runtime/model/chat_text.hpp"

#include "runtime/core/text.hpp"

namespace troupe {

std::string one_line(std::string_view text, std::size_t max_bytes) {
  auto whole = to_utf8(utf8_prefix(trim(text), max_bytes));
  std::string out;
  out.reserve(whole.size());
  for (auto c : whole) {
    auto blank = static_cast<unsigned char>(c) <= 0x20 || c == 0x7F;
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (trim(text).size() > max_bytes)
    out += "...";
  return out;
}

}  // namespace troupe

#include "runtime/model/surrogates.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr std::size_t escape_size = 6;  // \ud83d
constexpr std::string_view replacement = "\\ufffd";

enum class half { none, first, second };

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// What the escape at the front of `text` is. Source  RFC 8259, section 7.
half half_at(std::string_view text) {
  if (text.size() < escape_size || !text.starts_with("\\u") || (text[2] != 'd' && text[2] != 'D')
      || !is_hex(text[4]) || !is_hex(text[5]))
    return half::none;
  switch (text[3]) {
  case '8':
  case '9':
  case 'a':
  case 'A':
  case 'b':
  case 'B':
    return half::first;
  default:
    return is_hex(text[3]) && text[3] > '9' ? half::second : half::none;
  }
}

}  // namespace

bool may_have_surrogates(std::string_view text) noexcept {
  return text.find("\\ud") != std::string_view::npos || text.find("\\uD") != std::string_view::npos;
}

std::string surrogate_joiner::mend(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    auto plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    auto what = half_at(text);
    auto escape = text.substr(0, what == half::none ? 2 : escape_size);
    text.remove_prefix(escape.size());
    if (what == half::first && half_at(text) == half::second) {
      out += escape;
      out += text.substr(0, escape_size);
      text.remove_prefix(escape_size);
    } else if (what == half::first && text.starts_with('"')) {
      held_ = escape;
    } else if (what == half::second && out.ends_with('"') && !held_.empty()) {
      out += std::exchange(held_, {});
      out += escape;
    } else {
      out += what == half::none ? escape : replacement;
    }
  }
  return out;
}

}  // namespace troupe

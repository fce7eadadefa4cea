#include "runtime/core/text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe {
namespace {

/// Length of the well-formed sequence at the front, or 0.
std::size_t sequence_length(std::string_view s) noexcept {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  auto tail = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xC0) == 0x80; };
  auto b = byte(0);
  if (b < 0x80)
    return 1;
  if (b >= 0xC2 && b <= 0xDF)
    return tail(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    if (!tail(1) || !tail(2) || (b == 0xE0 && byte(1) < 0xA0) || (b == 0xED && byte(1) > 0x9F))
      return 0;
    return 3;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3) || (b == 0xF0 && byte(1) < 0x90)
        || (b == 0xF4 && byte(1) > 0x8F))
      return 0;
    return 4;
  }
  return 0;
}

bool is_tail(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a` (optimal string
/// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      auto replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above.back();
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    auto n = sequence_length(bytes);
    if (n == 0)
      return false;
    bytes.remove_prefix(n);
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  if (is_utf8(bytes))
    return std::string{bytes};
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    auto n = sequence_length(bytes);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
      n = 1;
    } else {
      out += bytes.substr(0, n);
    }
    bytes.remove_prefix(n);
  }
  return out;
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) noexcept {
  if (text.size() <= max_bytes)
    return text;
  while (max_bytes > 0 && is_tail(text[max_bytes]))
    --max_bytes;
  return text.substr(0, max_bytes);
}

std::string cut_middle(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes)
    return std::string{text};
  auto head = utf8_prefix(text, max_bytes - max_bytes / 2);
  auto tail_from = text.size() - max_bytes / 2;
  while (tail_from < text.size() && is_tail(text[tail_from]))
    ++tail_from;
  auto cut = tail_from - head.size();
  return std::string{head} + "\n... [" + std::to_string(cut) + " bytes cut] ...\n"
         + std::string{text.substr(tail_from)};
}

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view blank = " \t\r\n\f\v";
  auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  auto best_distance = static_cast<std::size_t>(-1);
  for (auto c : candidates) {
    auto d = edit_distance(name, c);
    if (d < best_distance
        && d <= std::max<std::size_t>(1, std::max(name.size(), c.size()) * 2 / 5)) {
      best = c;
      best_distance = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates) {
  auto best = nearest(name, candidates);
  return best.empty() ? std::string{} : " (did you mean '" + std::string{best} + "'?)";
}

}  // namespace troupe

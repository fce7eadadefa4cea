#include "runtime/eval/printable.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

constexpr char escape = '\x1B';

bool is_between(char c, char low, char high) {
  return c >= low && c <= high;
}

/// Past the end of a string sequence that BEL or ESC \ ends; to the end of the line if none does,
/// so that one stray introducer cannot swallow a whole text.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (; at < text.size() && text[at] != '\n'; ++at)
    if (text[at] == '\a')
      return at + 1;
    else if (text[at] == escape && at + 1 < text.size() && text[at + 1] == '\\')
      return at + 2;
  return at;
}

/// Past the escape sequence that begins at `at`.
std::size_t after_escape(std::string_view text, std::size_t at) {
  if (++at >= text.size())
    return at;
  constexpr std::string_view string_introducers = "]PX^_";
  if (string_introducers.find(text[at]) != std::string_view::npos)
    return after_string(text, at + 1);
  auto begin = at;
  if (text[at] == '[')
    for (++at; at < text.size() && is_between(text[at], 0x20, 0x3F);)
      ++at;
  else
    while (at < text.size() && is_between(text[at], 0x20, 0x2F))
      ++at;
  auto final = at < text.size() && is_between(text[at], 0x30, 0x7E);
  return final ? at + 1 : std::max(at, begin);
}

bool is_dropped(std::string_view sequence) {
  if (sequence.size() == 1)
    return (is_between(sequence[0], 0, 0x1F) && sequence[0] != '\n' && sequence[0] != '\t')
           || sequence[0] == 0x7F;
  if (sequence.size() == 2)  // C1 controls
    return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
  constexpr std::array<std::string_view, 11> bidirectional{
    "\xE2\x80\x8E", "\xE2\x80\x8F", "\xE2\x80\xAA", "\xE2\x80\xAB", "\xE2\x80\xAC", "\xE2\x80\xAD",
    "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA7", "\xE2\x81\xA8", "\xE2\x81\xA9"};
  return std::find(bidirectional.begin(), bidirectional.end(), sequence) != bidirectional.end();
}

std::size_t length_at(std::string_view text, std::size_t at) {
  std::size_t n = 1;
  while (at + n < text.size() && (static_cast<unsigned char>(text[at + n]) & 0xC0) == 0x80)
    ++n;
  return n;
}

}  // namespace

std::string printable(std::string_view text) {
  auto clean = to_utf8(text);
  std::string_view in{clean};
  std::string out;
  out.reserve(in.size());
  for (std::size_t at = 0; at < in.size();) {
    if (in[at] == escape) {
      at = after_escape(in, at);
      continue;
    }
    auto sequence = in.substr(at, length_at(in, at));
    if (!is_dropped(sequence))
      out += sequence;
    at += sequence.size();
  }
  return out;
}

std::string printable_line(std::string_view text, std::size_t max_bytes) {
  // Cut first: the rest need not be cleaned. Four times leaves room for what is dropped.
  auto line = printable(utf8_prefix(text, 4 * max_bytes));
  std::replace_if(
    line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  auto head = utf8_prefix(line, max_bytes);
  auto cut = head.size() < line.size() || text.size() > 4 * max_bytes;
  return std::string{head} + (cut ? "..." : "");
}

}  // namespace troupe

#pragma once
// Just enough of Python's lexer to know what is inside a string literal.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace troupe {

/// Where a string literal ends, or where it turned out not to be terminated.
struct literal_end {
  std::size_t at = 0;
  bool terminated = false;
};

/// The end of the literal whose opening quote is at `at`: past its closing quote; else the line's
/// end, or for triple quotes the text's end.
/// Source  The Python Language Reference, 2.4.1 "String and Bytes literals".
[[nodiscard]] literal_end end_of_literal(std::string_view text, std::size_t at) noexcept;

/// The first place at or after `from` where `stop(position)` is true outside of string literals;
/// npos when there is none. A literal that is not terminated counts as code. Comments are code in
/// which quotes mean nothing. Prefixes need no care: a backslash keeps a quote from ending a raw
/// string too.
/// Units   linear in the text, given that `stop` is constant.
template <class Stop>
[[nodiscard]] std::size_t find_outside_strings(std::string_view text, std::size_t from, Stop stop) {
  bool in_comment = false;
  std::size_t dead_until[4] = {};  // by quote and length: nothing closes one before this place
  for (auto at = from; at < text.size();) {
    if (stop(at))
      return at;
    auto c = text[at];
    in_comment = c == '#' || (in_comment && c != '\n');
    if (in_comment || (c != '"' && c != '\'')) {
      ++at;
      continue;
    }
    auto triple = text.substr(at, 3) == (c == '"' ? R"(""")" : "'''");
    auto& dead = dead_until[(c == '"' ? 2 : 0) + (triple ? 1 : 0)];
    auto end = at < dead ? literal_end{} : end_of_literal(text, at);
    if (!end.terminated)
      dead = std::max(dead, end.at);
    at = end.terminated ? end.at : at + (triple ? 3 : 1);
  }
  return std::string_view::npos;
}

}  // namespace troupe

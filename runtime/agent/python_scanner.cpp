#include "runtime/agent/python_scanner.hpp"

namespace troupe {

literal_end end_of_literal(std::string_view text, std::size_t at) noexcept {
  auto quote = text[at];
  auto triple = at + 2 < text.size() && text[at + 1] == quote && text[at + 2] == quote;
  for (auto i = at + (triple ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '\n' && !triple) {
      return {i, false};
    } else if (text[i] == quote) {
      if (!triple)
        return {i + 1, true};
      if (text.substr(i, 3) == text.substr(at, 3))
        return {i + 3, true};
    }
  }
  return {text.size(), false};
}

}  // namespace troupe

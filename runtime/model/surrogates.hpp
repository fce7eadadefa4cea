#pragma once
// Characters that a server has cut in half. Servers that count UTF-16 units end a piece of text
// within a surrogate pair: "\ud83d" at the end of one event's string, "\ude00" at the start of the
// next one's. Neither half is a character, and JSON parsers refuse both.

#include <string>
#include <string_view>

namespace troupe {

/// Mends the JSON texts of one stream, in order. Value.
class surrogate_joiner {
public:
  /// `text` with the second half of a pair made whole and a first half at a string's end held back
  /// for the next text. A half without its other is U+FFFD.
  [[nodiscard]] std::string mend(std::string_view text);

private:
  std::string held_;  ///< the escape of a first half, or empty
};

/// True when `text` has an escape that may be half of a pair.
[[nodiscard]] bool may_have_surrogates(std::string_view text) noexcept;

}  // namespace troupe

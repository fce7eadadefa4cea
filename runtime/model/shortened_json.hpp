#pragma once
// A JSON text without its long strings: whoever answers a long conversation looks at few of them,
// and a parser copies each byte of all.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Strings of ordinary characters are replaced by short ones that occur nowhere else in the text.
/// What is malformed stays, so that the parser finds it. The text must outlive it.
class shortened_json {
public:
  static constexpr std::size_t long_bytes = 256;  ///< as they stand in the text

  explicit shortened_json(std::string_view text);

  /// To be parsed in the place of the whole.
  [[nodiscard]] std::string_view text() const { return strings_.empty() ? whole_ : short_; }

  /// A string that was parsed, or several put together, as they are in the whole.
  [[nodiscard]] std::string restored(std::string_view parsed) const;

private:
  void replace(std::size_t from, std::size_t to);
  void append_string(std::string& out, std::string_view number) const;

  std::string_view whole_;
  std::string short_;
  std::size_t copied_ = 0;                 ///< of the whole
  std::vector<std::string_view> strings_;  ///< with their escapes
};

}  // namespace troupe

#pragma once
// JSON read piece by piece, for those who look at little of it: no value is built.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where, from `at` on, the first byte of a JSON string stands that is not plain: a quote, a
/// backslash, a control character or one beyond ASCII. text.size(): nowhere.
[[nodiscard]] std::size_t first_special(std::string_view text, std::size_t at) noexcept;

/// One JSON text, token by token. Strict as parse_json() is, and what it refuses is `bad`; so are
/// depths beyond 64. The text must outlive it.
/// Source  RFC 8259.
class json_tokens {
public:
  enum class token : std::uint8_t {
    object,
    object_end,
    array,
    array_end,
    key,     ///< text()
    string,  ///< text()
    number,  ///< number()
    boolean,
    null,
    end,  ///< the text was one whole value
    bad
  };

  static constexpr std::size_t max_depth = 64;

  explicit json_tokens(std::string_view text) : text_{text} {}

  /// The next token; not to be called after `end` or `bad`.
  [[nodiscard]] token next();

  /// Of a key or a string, without escapes, in valid UTF-8; until next() is called.
  [[nodiscard]] std::string_view text() const noexcept { return string_; }
  [[nodiscard]] double number() const noexcept { return number_; }

private:
  enum class expected : std::uint8_t { value, first_value, key, first_key, separator };

  [[nodiscard]] bool in_object() const { return (objects_ >> (depth_ - 1) & 1) != 0; }
  void skip_space();
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  token open(bool object);
  token close(char c);
  token value(char c);
  token key();
  token literal(std::string_view word, token what);
  token number_token();
  [[nodiscard]] bool read_string();

  std::string_view text_;
  std::size_t at_ = 0;
  expected expected_ = expected::value;
  std::size_t depth_ = 0;
  std::uint64_t objects_ = 0;  ///< a bit for each level: it is an object
  std::string_view string_;
  std::string unescaped_;
  double number_ = 0;
};

}  // namespace troupe

#include "runtime/eval/number_text.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace troupe {
namespace {

constexpr std::string_view minus_sign = "\xE2\x88\x92";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Letters, digits, underscores, and all of UTF-8 beyond ASCII but for signs and spaces we know.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Scans one text from left to right.
class number_scanner {
public:
  explicit number_scanner(std::string_view text) : text_{text} {}

  std::optional<written_number> last() {
    std::optional<written_number> found;
    while (at_ < text_.size())
      if (begins_number()) {
        auto negative = is_negative();
        if (auto number = take_number())
          found = {negative ? -number->value : number->value, number->percent};
      } else {
        ++at_;
      }
    return found;
  }

private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  /// A digit, or a point before one, that does not go on a word or another number.
  [[nodiscard]] bool begins_number() const {
    auto point = peek() == '.' && is_digit(peek(1));
    if (!is_digit(peek()) && !point)
      return false;
    if (at_ == 0)
      return true;
    auto before = text_[at_ - 1];
    return !is_word(before) && before != '.';
  }

  /// A minus before the number, or before its currency sign, that is no dash of something else.
  [[nodiscard]] bool is_negative() const {
    auto before = text_.substr(0, at_);
    for (std::string_view sign : {"$", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5"})
      if (before.ends_with(sign)) {
        before.remove_suffix(sign.size());
        break;
      }
    if (before.ends_with(minus_sign))
      before.remove_suffix(minus_sign.size());
    else if (before.ends_with('-'))
      before.remove_suffix(1);
    else
      return false;
    return before.empty() || (!is_word(before.back()) && before.back() != ')');
  }

  /// Digits with separators before every group of three, e.g. 1,234,567 or 1_234.
  std::string take_whole() {
    std::string digits;
    while (is_digit(peek()))
      digits += text_[at_++];
    while ((peek() == ',' || peek() == '_') && !digits.empty() && three_digits_follow()
           && (grouped_ || digits.size() <= 3)) {
      grouped_ = true;
      digits += text_.substr(at_ + 1, 3);
      at_ += 4;
    }
    grouped_ = false;
    return digits;
  }

  [[nodiscard]] bool three_digits_follow() const {
    return is_digit(peek(1)) && is_digit(peek(2)) && is_digit(peek(3)) && !is_digit(peek(4));
  }

  std::string take_decimals() {
    std::string out;
    if (peek() == '.' && is_digit(peek(1))) {
      out += text_[at_++];
      while (is_digit(peek()))
        out += text_[at_++];
    }
    return out;
  }

  std::string take_exponent() {
    std::string out;
    auto sign = peek(1) == '+' || peek(1) == '-';
    if ((peek() != 'e' && peek() != 'E') || !is_digit(peek(sign ? 2 : 1)))
      return out;
    out = "e";
    out += sign && peek(1) == '-' ? "-" : "";
    at_ += sign ? 2 : 1;
    while (is_digit(peek()))
      out += text_[at_++];
    return out;
  }

  static std::optional<double> value_of(const std::string& text) {
    double x = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (failed != std::errc{} || end != text.data() + text.size() || !std::isfinite(x))
      return std::nullopt;
    return x;
  }

  std::optional<written_number> take_number() {
    auto whole = take_whole();
    auto decimals = take_decimals();
    auto exponent = take_exponent();
    auto value = value_of((whole.empty() ? "0" : whole) + decimals + exponent);
    if (value && decimals.empty() && exponent.empty()) {
      if (peek() == '/' && is_digit(peek(1)))
        value = take_fraction(*value);
      else if (peek() == ' ' && is_digit(peek(1)))
        value = take_mixed(*value);
    }
    if (!value)
      return std::nullopt;
    auto percent =
      peek() == '%' || (peek() == ' ' && peek(1) == '%') || (peek() == '\\' && peek(1) == '%');
    return written_number{*value, percent};
  }

  /// The rest of a/b. None for b = 0 and for dates such as 3/4/2024, which are passed over whole.
  std::optional<double> take_fraction(double numerator) {
    ++at_;
    auto denominator = value_of(take_whole());
    auto date = false;
    while (peek() == '/' && is_digit(peek(1))) {
      ++at_;
      take_whole();
      date = true;
    }
    if (date || !denominator || *denominator == 0)
      return std::nullopt;
    return numerator / *denominator;
  }

  /// "1 3/4", if that is what follows; else the whole number alone.
  std::optional<double> take_mixed(double whole) {
    auto back = at_;
    ++at_;
    auto numerator = value_of(take_whole());
    if (numerator && peek() == '/' && is_digit(peek(1)))
      if (auto part = take_fraction(*numerator); part && *part < 1)
        return whole + *part;
    at_ = back;
    return whole;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool grouped_ = false;
};

}  // namespace

std::optional<written_number> read_number(std::string_view text) {
  return number_scanner{text}.last();
}

}  // namespace troupe

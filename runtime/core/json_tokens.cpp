#include "runtime/core/json_tokens.hpp"

#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {
namespace {

constexpr std::size_t block_bytes = 64;

constexpr bool is_special(char c) {
  auto byte = static_cast<signed char>(c);
  return ((byte < 0x20) | (byte == '"') | (byte == '\\')) != 0;
}

/// True when one of the block is special. Without a branch inside, compilers look at many at once.
bool any_special(const char* block) {
  unsigned char found = 0;
  for (std::size_t i = 0; i < block_bytes; ++i)
    found |= static_cast<unsigned char>(is_special(block[i]));
  return found != 0;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits that a double holds exactly.
bool is_plain_count(std::string_view text) {
  return !text.empty() && text.size() <= 15 && (text.front() != '0' || text.size() == 1)
         && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

std::size_t first_special(std::string_view text, std::size_t at) noexcept {
  while (at + block_bytes <= text.size() && !any_special(text.data() + at))
    at += block_bytes;
  while (at < text.size() && !is_special(text[at]))
    ++at;
  return at;
}

json_tokens::token json_tokens::next() {
  skip_space();
  auto c = peek();
  if (expected_ == expected::separator) {
    if (depth_ == 0)
      return at_ == text_.size() ? token::end : token::bad;
    if (c != ',')
      return close(c);
    ++at_;
    expected_ = in_object() ? expected::key : expected::value;
    skip_space();
    c = peek();
  }
  if (expected_ == expected::first_key && c == '}')
    return close(c);
  if (expected_ == expected::first_value && c == ']')
    return close(c);
  auto wants_key = expected_ == expected::key || expected_ == expected::first_key;
  return wants_key ? key() : value(c);
}

void json_tokens::skip_space() {
  while (at_ < text_.size()
         && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

json_tokens::token json_tokens::open(bool object) {
  if (depth_ == max_depth)
    return token::bad;
  auto bit = std::uint64_t{1} << depth_++;
  objects_ = object ? objects_ | bit : objects_ & ~bit;
  ++at_;
  expected_ = object ? expected::first_key : expected::first_value;
  return object ? token::object : token::array;
}

json_tokens::token json_tokens::close(char c) {
  auto object = in_object();
  if (c != (object ? '}' : ']'))
    return token::bad;
  --depth_;
  ++at_;
  expected_ = expected::separator;
  return object ? token::object_end : token::array_end;
}

json_tokens::token json_tokens::key() {
  if (peek() != '"' || !read_string())
    return token::bad;
  skip_space();
  if (peek() != ':')
    return token::bad;
  ++at_;
  expected_ = expected::value;
  return token::key;
}

json_tokens::token json_tokens::value(char c) {
  if (c == '{' || c == '[')
    return open(c == '{');
  expected_ = expected::separator;
  switch (c) {
  case '"':
    return read_string() ? token::string : token::bad;
  case 't':
    return literal("true", token::boolean);
  case 'f':
    return literal("false", token::boolean);
  case 'n':
    return literal("null", token::null);
  default:
    return number_token();
  }
}

json_tokens::token json_tokens::literal(std::string_view word, token what) {
  if (!text_.substr(at_).starts_with(word))
    return token::bad;
  at_ += word.size();
  return what;
}

json_tokens::token json_tokens::number_token() {
  constexpr std::string_view more = "+-.eE";
  auto from = at_;
  while (at_ < text_.size() && (is_digit(text_[at_]) || more.find(text_[at_]) != more.npos))
    ++at_;
  auto digits = text_.substr(from, at_ - from);
  if (is_plain_count(digits)) {
    std::uint64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    number_ = static_cast<double>(n);
    return token::number;
  }
  auto parsed = json::parse(digits, nullptr, false);
  if (!parsed.is_number())
    return token::bad;
  number_ = parsed.get<double>();
  return token::number;
}

/// From a quote to behind the next one that closes it.
bool json_tokens::read_string() {
  auto from = at_;
  auto escaped = false, ascii = true;
  while ((at_ = first_special(text_, at_ + 1)) < text_.size() && text_[at_] != '"') {
    auto c = static_cast<unsigned char>(text_[at_]);
    if (c < 0x20)
      return false;
    ascii = ascii && c < 0x80;
    escaped = escaped || c == '\\';
    at_ += c == '\\' ? 1 : 0;
  }
  if (at_ >= text_.size())
    return false;
  auto quoted = text_.substr(from, ++at_ - from);
  string_ = quoted.substr(1, quoted.size() - 2);
  if (!escaped)
    return ascii || is_utf8(string_);
  auto parsed = json::parse(quoted, nullptr, false);
  if (!parsed.is_string())
    return false;
  unescaped_ = std::move(parsed.get_ref<std::string&>());
  string_ = unescaped_;
  return true;
}

}  // namespace troupe

#include "runtime/model/shortened_json.hpp"

#include "runtime/core/json.hpp"
#include "runtime/core/json_tokens.hpp"
#include "runtime/core/text.hpp"

#include <charconv>

namespace troupe {
namespace {

// It stands on both sides of a replaced string's number; a text that has it already is left alone.
constexpr char mark = '\1';
constexpr std::string_view escaped_mark = "\\u0001";

struct string_end {
  std::size_t at = std::string_view::npos;  ///< of the closing quote
  bool ordinary = true;                     ///< may be replaced, if it is UTF-8
  bool ascii = true;
  bool marked = false;
};

string_end end_of_string(std::string_view text, std::size_t at) {
  string_end out;
  while ((at = first_special(text, at)) < text.size() && text[at] != '"') {
    auto c = static_cast<unsigned char>(text[at]);
    if (c == '\\') {
      auto next = at + 1 < text.size() ? text[at + 1] : '\0';
      out.ordinary &= std::string_view{"\"\\/bfnrt"}.find(next) != std::string_view::npos;
      out.marked |= text.substr(at, escaped_mark.size()) == escaped_mark;
      ++at;
    } else if (c >= 0x80) {
      out.ascii = false;
    } else {
      out.ordinary = false;
    }
    ++at;
  }
  if (at < text.size())
    out.at = at;
  return out;
}

}  // namespace

shortened_json::shortened_json(std::string_view text) : whole_{text} {
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string_view::npos;) {
    auto from = at + 1;
    auto end = end_of_string(text, from);
    if (end.marked)
      strings_.clear();
    if (end.marked || end.at == std::string_view::npos)
      break;
    auto inside = text.substr(from, end.at - from);
    if (inside.size() >= long_bytes && end.ordinary && (end.ascii || is_utf8(inside)))
      replace(from, end.at);
    at = end.at + 1;
  }
  if (!strings_.empty())
    short_ += text.substr(copied_);
}

void shortened_json::replace(std::size_t from, std::size_t to) {
  short_ += whole_.substr(copied_, from - copied_);
  short_ += escaped_mark;
  short_ += std::to_string(strings_.size());
  short_ += escaped_mark;
  strings_.push_back(whole_.substr(from, to - from));
  copied_ = to;
}

std::string shortened_json::restored(std::string_view parsed) const {
  std::string out;
  auto begin = std::string_view::npos;
  while (!strings_.empty() && (begin = parsed.find(mark)) != std::string_view::npos) {
    out += parsed.substr(0, begin);
    parsed.remove_prefix(begin + 1);
    auto end = parsed.find(mark);
    append_string(out, parsed.substr(0, end));
    parsed.remove_prefix(end == std::string_view::npos ? parsed.size() : end + 1);
  }
  out += parsed;
  return out;
}

void shortened_json::append_string(std::string& out, std::string_view number) const {
  std::size_t i = 0;
  std::from_chars(number.data(), number.data() + number.size(), i);
  if (i >= strings_.size())
    return;
  auto text = strings_[i];
  if (text.find('\\') == std::string_view::npos)
    out += text;
  else
    out += json::parse("\"" + std::string{text} + "\"", nullptr, false).get<std::string>();
}

}  // namespace troupe

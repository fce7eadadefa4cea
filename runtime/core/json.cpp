#include "runtime/core/json.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {
namespace {

struct position {
  std::size_t line = 1;
  std::size_t column = 1;
};

position position_of(std::string_view text, std::size_t byte) {
  byte = std::min(byte, text.size());
  auto before = text.substr(0, byte);
  auto line_start = before.rfind('\n');
  auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  return {lines + 1, line_start == std::string_view::npos ? byte + 1 : byte - line_start};
}

/// The byte offset at which nesting first exceeds `max_depth`, or npos. Strings are skipped.
std::size_t too_deep_at(std::string_view text, unsigned max_depth) {
  unsigned depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth)
        return i;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

/// nlohmann repeats the text that it read last: all of a long string, and bytes of any kind.
std::string decent(std::string_view what) {
  constexpr std::size_t longest = 300;
  auto text = to_utf8(what.substr(0, longest * 2));
  return what.size() <= longest ? text : std::string{utf8_prefix(text, longest)} + "...";
}

/// nlohmann's text without its "[json.exception.parse_error.101] parse error at ...: " prefix.
std::string reason_of(const json::parse_error& e) {
  std::string_view what = e.what();
  auto at = what.find(": ");
  if (at != std::string_view::npos)
    what.remove_prefix(at + 2);
  return decent(what);
}

error corrupt_at(position p, std::string what) {
  return {errc::corrupt, "line " + std::to_string(p.line) + ", column " + std::to_string(p.column)
                           + ": " + std::move(what)};
}

}  // namespace

result<json> parse_json(std::string_view text, const json_limits& limits) {
  if (text.size() > limits.max_bytes)
    return fail(errc::corrupt, std::to_string(text.size()) + " bytes of JSON, more than the "
                                 + std::to_string(limits.max_bytes) + " allowed");
  if (auto at = too_deep_at(text, limits.max_depth); at != std::string_view::npos)
    return fail(corrupt_at(position_of(text, at),
                           "nested deeper than " + std::to_string(limits.max_depth) + " levels"));
  try {
    return json::parse(text);
  } catch (const json::parse_error& e) {
    return fail(corrupt_at(position_of(text, e.byte > 0 ? e.byte - 1 : 0), reason_of(e)));
  } catch (const json::exception& e) {
    return fail(errc::corrupt, decent(e.what()));
  }
}

std::string dump_json(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  if (!is_utf8(text)) {
    append_json_string(out, to_utf8(text));
    return;
  }
  out.reserve(out.size() + text.size() + text.size() / 16 + 2);
  out += '"';
  auto plain_from = text.begin();
  for (auto it = text.begin(); it != text.end(); ++it) {
    auto c = static_cast<unsigned char>(*it);
    if (c >= 0x20 && c != '"' && c != '\\')
      continue;
    out.append(plain_from, it);
    plain_from = it + 1;
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
    }
  }
  out.append(plain_from, text.end());
  out += '"';
}

std::string string_or(const json& object, std::string_view key, std::string_view fallback) {
  if (object.is_object())
    if (auto it = object.find(key); it != object.end() && it->is_string())
      return it->get<std::string>();
  return std::string{fallback};
}

}  // namespace troupe

#include "runtime/agent/loose_json.hpp"

#include "runtime/core/text.hpp"

namespace troupe {
namespace {

constexpr auto npos = std::string_view::npos;

/// Without the fence around it, if it has one.
std::string_view unfenced(std::string_view text) {
  text = trim(text);
  auto line_end = text.find('\n');
  if (!text.starts_with("```") || !text.ends_with("```") || line_end == npos)
    return text;
  text.remove_suffix(3);
  return trim(text.substr(line_end));
}

}  // namespace

std::size_t end_of_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  auto in_string = false;
  for (; at < text.size(); ++at) {
    auto c = text[at];
    if (in_string && c == '\\')
      ++at;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      ++depth;
    else if (!in_string && (c == '}' || c == ']') && --depth == 0)
      return at + 1;
  }
  return npos;
}

std::string with_escaped_breaks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  auto in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto c = text[at];
    if (c == '"')
      in_string = !in_string;
    if (in_string && c == '\\' && at + 1 < text.size())
      out += text[at++];
    if (in_string && (c == '\n' || c == '\r' || c == '\t'))
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else
      out += text[at];
  }
  return out;
}

result<json> json_in(std::string_view text) {
  text = unfenced(text);
  if (auto all = parse_json(with_escaped_breaks(text)))
    return all;
  auto at = text.find_first_of("{[");
  if (at == npos)
    return fail(errc::corrupt, "there is no JSON in it");
  auto end = end_of_value(text, at);
  if (end == npos)
    return fail(errc::corrupt, "the JSON in it is not complete: its last bracket is missing");
  auto found = parse_json(with_escaped_breaks(text.substr(at, end - at)));
  if (!found)
    return fail(errc::corrupt, "the JSON in it cannot be read: " + found.error().detail);
  return found;
}

}  // namespace troupe

#include "runtime/agent/fences.hpp"

#include "runtime/agent/python_scanner.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto npos = std::string_view::npos;

/// True when the line that `at` lies in has only blanks before it.
bool starts_line(std::string_view text, std::size_t at) noexcept {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'))
    --at;
  return at == 0 || text[at - 1] == '\n';
}

std::size_t fence_from(std::string_view text, std::size_t from) noexcept {
  auto at = text.find("```", from);
  while (at != npos && !starts_line(text, at))
    at = text.find("```", at + 1);
  return at;
}

std::size_t line_end(std::string_view text, std::size_t at) noexcept {
  return std::min(text.find('\n', at), text.size());
}

std::string label_of(std::string_view info) {
  auto word = trim(info);
  std::string label{word.substr(0, word.find_first_of(" \t{"))};
  std::transform(label.begin(), label.end(), label.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return label;
}

bool is_kind(const std::string& label, fence_kind kind) {
  if (kind == fence_kind::unlabelled)
    return label.empty();
  return label == "python" || label == "py" || label == "python3";
}

void add_block(std::string& code, std::string_view block) {
  auto part = tidy_block(block);
  if (part.empty())
    return;
  if (!code.empty())
    code += "\n\n";
  code += part;
}

/// The indentation that every line which is not blank shares with the first one.
std::string_view shared_indent(std::string_view block) {
  auto indent = block.substr(0, std::min(block.find_first_not_of(" \t"), block.size()));
  for (std::size_t at = 0; at < block.size(); at = line_end(block, at) + 1) {
    auto line = block.substr(at, line_end(block, at) - at);
    if (!trim(line).empty() && !line.starts_with(indent))
      return {};
  }
  return indent;
}

}  // namespace

std::string fenced_code(std::string_view text, fence_kind kind) {
  std::string code;
  for (auto open = fence_from(text, 0); open != npos;) {
    auto info = text.substr(open + 3, line_end(text, open) - open - 3);
    auto from = std::min(line_end(text, open) + 1, text.size());
    auto wanted = is_kind(label_of(info), kind);
    auto close = wanted ? find_outside_strings(text, from,
                                               [&](std::size_t i) {
                                                 return text[i] == '`' && text.substr(i, 3) == "```"
                                                        && starts_line(text, i);
                                               })
                        : fence_from(text, from);
    if (wanted)
      add_block(code, text.substr(from, close == npos ? npos : close - from));
    open = close == npos ? npos : fence_from(text, line_end(text, close));
  }
  return code;
}

std::string tidy_block(std::string_view block) {
  auto body = trim(block);
  if (body.empty())
    return {};
  auto first = static_cast<std::size_t>(body.data() - block.data());
  auto indented = block.substr(0, first).rfind('\n');
  if (indented == npos || indented + 1 == first)
    return std::string{body};
  auto lines = block.substr(indented + 1, first - indented - 1 + body.size());
  auto indent = shared_indent(lines);
  std::string out;
  for (std::size_t at = 0; at < lines.size(); at = line_end(lines, at) + 1) {
    auto line = lines.substr(at, line_end(lines, at) - at);
    if (at > 0)
      out += '\n';
    out += line.starts_with(indent) ? line.substr(indent.size()) : line;
  }
  return std::string{trim(out)};
}

}  // namespace troupe

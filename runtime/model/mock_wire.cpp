#include "runtime/model/mock_wire.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Where task and last stand among the entries.
struct outline {
  const json* task = nullptr;
  std::size_t last_from = 0;
  std::uint32_t turn = 0;
};

outline outline_of(const json& entries, mock_role_fn who, bool grouped) {
  outline out;
  auto before = role::system;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto now = who(entries[i]);
    if (now == role::assistant) {
      out.turn += grouped && before == role::assistant ? 0 : 1;
      out.last_from = i + 1;
    } else if (now == role::user && out.turn == 0) {
      out.task = &entries[i];
    }
    before = now;
  }
  return out;
}

}  // namespace

void read_conversation(const json& entries, mock_role_fn who, bool grouped, mock_ask& out) {
  auto found = outline_of(entries, who, grouped);
  out.turn = found.turn;
  out.task = found.task ? text_in(*found.task) : std::string{};
  for (auto i = found.last_from; i < entries.size(); ++i) {
    if (who(entries[i]) == role::system)
      continue;
    out.last += out.last.empty() ? "" : "\n";
    out.last += text_in(entries[i]);
  }
}

std::string text_in(const json& value) {
  if (value.is_string())
    return value.get<std::string>();
  std::string out;
  if (value.is_array())
    for (auto& part : value)
      out += text_in(part);
  if (value.is_object())
    for (auto* name : {"text", "content", "output"})
      if (auto it = value.find(name); it != value.end())
        return text_in(*it);
  return out;
}

std::optional<std::uint64_t> count_in(const json& body, std::string_view name) {
  auto it = body.find(name);
  if (it == body.end() || !it->is_number_unsigned())
    return std::nullopt;
  return it->get<std::uint64_t>();
}

std::vector<std::string> texts_in(const json& body, std::string_view name) {
  std::vector<std::string> out;
  auto it = body.find(name);
  if (it == body.end())
    return out;
  if (it->is_string())
    out.push_back(it->get<std::string>());
  if (it->is_array())
    for (auto& text : *it)
      if (text.is_string())
        out.push_back(text.get<std::string>());
  std::erase(out, "");
  return out;
}

bool flag_in(const json& body, std::string_view name) {
  auto it = body.is_object() ? body.find(name) : body.end();
  return it != body.end() && it->is_boolean() && it->get<bool>();
}

std::vector<std::string_view> parts_of(std::string_view text, std::size_t bytes) {
  constexpr std::size_t longest_sequence = 4;
  std::vector<std::string_view> out;
  while (!text.empty()) {
    auto part = utf8_prefix(text, std::max(bytes, longest_sequence));
    out.push_back(part);
    text.remove_prefix(part.size());
  }
  return out;
}

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string named_event(const json& data) {
  return "event: " + string_or(data, "type") + "\ndata: " + dump_json(data) + "\n\n";
}

}  // namespace troupe

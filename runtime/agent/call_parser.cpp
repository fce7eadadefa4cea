#include "runtime/agent/call_parser.hpp"

#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/loose_json.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace troupe {
namespace {

constexpr auto npos = std::string_view::npos;

bool looks_like_json(std::string_view text) {
  return text.starts_with('{') || text.starts_with('[');
}

/// A text that was given as arguments: the JSON in it, or itself.
result<json> json_within(const std::string& text) {
  auto inner = trim(text);
  if (inner.empty())
    return json::object();
  return looks_like_json(inner) ? parse_json(inner) : result<json>{json(text)};
}

const json* first_of(const json& object, std::initializer_list<std::string_view> keys) {
  for (auto key : keys)
    if (auto it = object.find(key); it != object.end())
      return &*it;
  return nullptr;
}

std::string keys_of(const json& object) {
  std::string out;
  for (auto it = object.begin(); it != object.end() && out.size() < max_tool_name_bytes; ++it)
    out += (out.empty() ? "" : ", ") + std::string{utf8_prefix(it.key(), max_tool_name_bytes)};
  return out.empty() ? "none" : out;
}

void add_call(const json& object, parsed_calls& out) {
  auto* name = first_of(object, {"name", "tool", "tool_name", "function", "action"});
  if (name == nullptr || !name->is_string()) {
    if (out.error.empty())
      out.error = "the JSON in it names no tool: it has the keys " + keys_of(object)
                  + ", and \"name\" is missing";
    return;
  }
  wanted_call call;
  call.tool = utf8_prefix(trim(name->get_ref<const std::string&>()), max_tool_name_bytes);
  auto* given =
    first_of(object, {"arguments", "args", "parameters", "input", "action_input", "tool_input"});
  if (given != nullptr) {
    call.shown = given->is_string() ? given->get<std::string>() : dump_json(*given);
    auto decoded = given->is_string() ? json_within(call.shown) : result<json>{*given};
    if (decoded)
      call.arguments = *std::move(decoded);
    else
      call.error = "the arguments are not JSON: " + decoded.error().detail;
  }
  out.calls.push_back(std::move(call));
}

/// What a value in the text holds: one call, several, or OpenAI's wrapping of them.
void add_calls(const json& value, parsed_calls& out) {
  if (value.is_array()) {
    for (auto& item : value)
      if (item.is_object())
        add_calls(item, out);
    return;
  }
  if (!value.is_object())
    return;
  if (auto* wrapped = first_of(value, {"tool_calls", "function"});
      wrapped != nullptr && wrapped->is_structured())
    return add_calls(*wrapped, out);
  add_call(value, out);
}

/// All that is JSON in a text, in order.
class call_search {
public:
  explicit call_search(std::string_view text) : text_{text}, work_left_{16 * text.size()} {
    for (auto at = text_.find_first_of("{["); at != npos; at = text_.find_first_of("{[", at))
      at = take(at);
    if (!found_.calls.empty() && !broken_call_.empty())
      found_.calls.push_back({.tool = "(a call)", .error = broken_call_});
    if (!broken_.empty())
      found_.error = broken_;
  }

  parsed_calls finish() { return std::move(found_); }

private:
  /// Returns where to go on.
  std::size_t take(std::size_t at) {
    auto end = end_of_value(text_, at);
    auto piece = text_.substr(at, end == npos ? npos : end - at);
    if (piece.size() > work_left_)
      return npos;
    work_left_ -= piece.size();
    if (end == npos) {
      note_broken(piece, "the JSON in it is not complete: its last bracket is missing");
      return at + 1;
    }
    if (auto value = parse_json(with_escaped_breaks(piece)))
      add_calls(*value, found_);
    else
      note_broken(piece, "the JSON in it cannot be read: " + value.error().detail);
    return end;
  }

  /// Brackets in prose are no calls; what is quoted like one was meant as one.
  void note_broken(std::string_view piece, std::string why) {
    if (broken_.empty() && piece.starts_with('{'))
      broken_ = why;
    if (broken_call_.empty() && piece.starts_with('{') && piece.find("name") != npos)
      broken_call_ = std::move(why);
  }

  std::string_view text_;
  std::size_t work_left_;  ///< bytes: brackets that are never closed must not cost quadratic time
  parsed_calls found_;
  std::string broken_;
  std::string broken_call_;
};

/// What follows the first line that begins with "Action:"; all of it where there is none.
std::string_view after_marker(std::string_view text) {
  constexpr std::string_view mark = "Action:";
  for (auto at = text.find(mark); at != npos; at = text.find(mark, at + 1)) {
    auto before = text.substr(0, at);
    auto line = before.substr(before.find_last_of('\n') + 1);  // npos + 1 is 0
    if (line.find_first_not_of(" \t*#") == npos)
      return text.substr(at + mark.size());
  }
  return text;
}

std::string example_of(std::string_view tool, const json& arguments) {
  return "Action:\n{\"name\": \"" + std::string{tool} + "\", \"arguments\": " + dump_json(arguments)
         + "}\n";
}

std::string first_parameter(const tool_spec& tool) {
  auto properties =
    tool.parameters.is_object() ? tool.parameters.find("properties") : tool.parameters.end();
  return properties != tool.parameters.end() && properties->is_object() && !properties->empty()
           ? properties->begin().key()
           : "answer";
}

}  // namespace

result<json> decoded_arguments(std::string_view text) {
  if (trim(text).empty())
    return json::object();
  auto value = parse_json(text);
  if (value && value->is_string())
    value = json_within(value->get<std::string>());
  if (!value)
    return fail(errc::corrupt, "the arguments are not JSON: " + value.error().detail);
  return value;
}

parsed_calls calls_in_text(std::string_view text) {
  auto marked = after_marker(text);
  auto found = call_search{marked}.finish();
  if (!found.calls.empty() || marked.size() == text.size())
    return found;
  auto anywhere = call_search{text}.finish();
  return anywhere.calls.empty() ? found : anywhere;
}

std::string no_call_error(std::string_view reply, std::string_view why, call_protocol protocol,
                          const tool_spec& answer_tool) {
  auto native = protocol == call_protocol::native;
  std::string out = "Your reply called no tool";
  out += why.empty() ? "." : ": " + std::string{why} + ".";
  if (native) {
    out += " Text alone does nothing: call the tool that takes you further.\n";
    return out + "If you know the answer, call " + answer_tool.name + " with it.";
  }
  out += "\nWrite a short thought, then the call as JSON, like this:\n"
         + example_of("name_of_the_tool", {{"argument", "value"}});
  if (mentions_answer(reply))
    out += "If you meant to give your final answer, give it by a call:\n"
           + example_of(answer_tool.name, {{first_parameter(answer_tool), "your answer here"}});
  return out;
}

}  // namespace troupe

// OpenAI's Responses API, the server's side.
// Source: platform.openai.com/docs/api-reference/responses, .../responses-streaming
#include "runtime/model/mock_wire.hpp"

namespace troupe {
namespace {

mock_error missing(const std::string& name) {
  return {400, "Missing required parameter: '" + name + "'.", "invalid_request_error", name,
          "missing_required_parameter"};
}

role who(const json& item) {
  auto name = string_or(item, "role");
  if (name == "user")
    return role::user;
  if (name == "system" || name == "developer")
    return role::system;
  return string_or(item, "type").ends_with("_output") ? role::tool : role::assistant;
}

tl::expected<mock_ask, mock_error> read(const json& body) {
  mock_ask out;
  out.model = string_or(body, "model");
  if (out.model.empty())
    return tl::unexpected(missing("model"));
  auto input = body.find("input");
  if (input == body.end() || (!input->is_string() && !input->is_array()))
    return tl::unexpected(missing("input"));
  if (input->is_array())
    read_conversation(*input, who, true, out);
  else
    out.task = out.last = input->get<std::string>();
  out.stream = flag_in(body, "stream");
  out.max_tokens = count_in(body, "max_output_tokens");
  out.previous = string_or(body, "previous_response_id");
  return out;
}

json usage_of(const token_usage& u) {
  return {{"input_tokens", u.input},
          {"input_tokens_details", {{"cached_tokens", u.cached}}},
          {"output_tokens", u.output},
          {"output_tokens_details", {{"reasoning_tokens", u.reasoning}}},
          {"total_tokens", u.total()}};
}

json text_part(std::string_view text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::array()},
          {"logprobs", json::array()}};
}

json summary_part(std::string_view text) {
  return {{"type", "summary_text"}, {"text", text}};
}

json message_item(const mock_message& m, bool done) {
  auto content = json::array();
  if (done)
    content.push_back(text_part(m.reply.text));
  return {{"id", "msg_" + m.id},
          {"type", "message"},
          {"role", "assistant"},
          {"status", done ? "completed" : "in_progress"},
          {"content", content}};
}

json reasoning_item(const mock_message& m, bool done) {
  auto summary = json::array();
  if (done)
    summary.push_back(summary_part(m.reply.reasoning));
  return {{"id", "rs_" + m.id}, {"type", "reasoning"}, {"summary", summary}};
}

json call_item(const mock_message& m, std::size_t n, bool done) {
  auto& call = m.reply.tool_calls[n];
  return {{"id", "fc_" + m.id + "_" + std::to_string(n)},
          {"type", "function_call"},
          {"status", done ? "completed" : "in_progress"},
          {"call_id", call.id},
          {"name", call.name},
          {"arguments", done ? call.arguments : ""}};
}

bool has_message(const model_reply& r) {
  return !r.text.empty() || r.tool_calls.empty();
}

json output_of(const mock_message& m) {
  auto out = json::array();
  if (!m.reply.reasoning.empty())
    out.push_back(reasoning_item(m, true));
  if (has_message(m.reply))
    out.push_back(message_item(m, true));
  for (std::size_t i = 0; i < m.reply.tool_calls.size(); ++i)
    out.push_back(call_item(m, i, true));
  return out;
}

/// Why the reply is not whole, in the provider's word; empty when it is.
std::string incomplete_reason(const model_reply& r) {
  if (r.finish_reason == "length")
    return "max_output_tokens";
  return r.finish_reason == "content_filter" ? "content_filter" : "";
}

json response_of(const mock_message& m, bool done) {
  auto reason = done ? incomplete_reason(m.reply) : std::string{};
  json out{{"id", "resp_" + m.id},
           {"object", "response"},
           {"created_at", m.created},
           {"model", m.reply.model},
           {"error", nullptr},
           {"incomplete_details", nullptr},
           {"instructions", nullptr},
           {"metadata", json::object()},
           {"parallel_tool_calls", true},
           {"tool_choice", "auto"},
           {"tools", json::array()},
           {"temperature", nullptr},
           {"top_p", nullptr},
           {"usage", nullptr},
           {"output", json::array()},
           {"status", !done            ? "in_progress"
                      : reason.empty() ? "completed"
                                       : "incomplete"}};
  if (!reason.empty())
    out["incomplete_details"] = {{"reason", reason}};
  if (done) {
    out["output"] = output_of(m);
    out["usage"] = usage_of(m.reply.usage);
  }
  return out;
}

std::string whole(const mock_message& m) {
  return dump_json(response_of(m, true));
}

/// Numbers the events and names the item that they belong to.
class event_writer {
public:
  void event(std::string_view type, json members) {
    members["type"] = type;
    members["sequence_number"] = number_++;
    out.push_back(named_event(members));
  }

  void item_begins(const json& item) {
    item_id_ = string_or(item, "id");
    event("response.output_item.added", {{"output_index", index_}, {"item", item}});
  }

  /// An event within the item; `part` is the member that counts its parts, empty for none.
  void within(std::string_view type, std::string_view part, json members) {
    members["item_id"] = item_id_;
    members["output_index"] = index_;
    if (!part.empty())
      members[std::string{part}] = 0;
    event(type, std::move(members));
  }

  void item_ends(const json& item) {
    event("response.output_item.done", {{"output_index", index_++}, {"item", item}});
  }

  std::vector<std::string> out;

private:
  std::size_t number_ = 0;
  std::size_t index_ = 0;
  std::string item_id_;
};

void write_reasoning(event_writer& w, const mock_message& m) {
  constexpr std::string_view part = "summary_index";
  auto& text = m.reply.reasoning;
  w.item_begins(reasoning_item(m, false));
  w.within("response.reasoning_summary_part.added", part, {{"part", summary_part("")}});
  for (auto piece : parts_of(text, m.chunk_bytes))
    w.within("response.reasoning_summary_text.delta", part, {{"delta", piece}});
  w.within("response.reasoning_summary_text.done", part, {{"text", text}});
  w.within("response.reasoning_summary_part.done", part, {{"part", summary_part(text)}});
  w.item_ends(reasoning_item(m, true));
}

void write_message(event_writer& w, const mock_message& m) {
  constexpr std::string_view part = "content_index";
  auto& text = m.reply.text;
  auto none = json::array();
  w.item_begins(message_item(m, false));
  w.within("response.content_part.added", part, {{"part", text_part("")}});
  for (auto piece : parts_of(text, m.chunk_bytes))
    w.within("response.output_text.delta", part, {{"delta", piece}, {"logprobs", none}});
  w.within("response.output_text.done", part, {{"text", text}, {"logprobs", none}});
  w.within("response.content_part.done", part, {{"part", text_part(text)}});
  w.item_ends(message_item(m, true));
}

void write_call(event_writer& w, const mock_message& m, std::size_t n) {
  auto& call = m.reply.tool_calls[n];
  w.item_begins(call_item(m, n, false));
  for (auto piece : parts_of(call.arguments, m.chunk_bytes))
    w.within("response.function_call_arguments.delta", "", {{"delta", piece}});
  w.within("response.function_call_arguments.done", "",
           {{"name", call.name}, {"arguments", call.arguments}});
  w.item_ends(call_item(m, n, true));
}

std::vector<std::string> events(const mock_message& m) {
  event_writer w;
  w.event("response.created", {{"response", response_of(m, false)}});
  w.event("response.in_progress", {{"response", response_of(m, false)}});
  if (!m.reply.reasoning.empty())
    write_reasoning(w, m);
  if (has_message(m.reply))
    write_message(w, m);
  for (std::size_t i = 0; i < m.reply.tool_calls.size(); ++i)
    write_call(w, m, i);
  auto whole = incomplete_reason(m.reply).empty();
  w.event(whole ? "response.completed" : "response.incomplete",
          {{"response", response_of(m, true)}});
  return std::move(w.out);
}

}  // namespace

const mock_wire& mock_responses() noexcept {
  static constexpr mock_wire wire{
    wire_format::openai_responses, "call_", "x-request-id", read, whole, events};
  return wire;
}

}  // namespace troupe

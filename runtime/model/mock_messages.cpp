// Anthropic's Messages, the server's side.
// Source: docs.claude.com/en/api/messages, docs.claude.com/en/docs/build-with-claude/streaming
#include "runtime/model/mock_wire.hpp"

#include <algorithm>

namespace troupe {
namespace {

mock_error required(const std::string& name) {
  return {400, name + ": Field required"};
}

role who(const json& message) {
  return string_or(message, "role") == "assistant" ? role::assistant : role::user;
}

tl::expected<mock_ask, mock_error> read(const json& body) {
  mock_ask out;
  out.model = string_or(body, "model");
  if (out.model.empty())
    return tl::unexpected(required("model"));
  out.max_tokens = count_in(body, "max_tokens");
  if (!out.max_tokens)
    return tl::unexpected(required("max_tokens"));
  auto messages = body.find("messages");
  if (messages == body.end())
    return tl::unexpected(required("messages"));
  if (!messages->is_array() || messages->empty())
    return tl::unexpected(mock_error{400, "messages: at least one message is required"});
  read_conversation(*messages, who, false, out);
  out.stream = flag_in(body, "stream");
  out.stop = texts_in(body, "stop_sequences");
  return out;
}

std::string stop_reason(const mock_message& m) {
  if (!m.stop_sequence.empty())
    return "stop_sequence";
  auto& finish = m.reply.finish_reason;
  if (finish == "stop")
    return "end_turn";
  if (finish == "length")
    return "max_tokens";
  if (finish == "tool_calls")
    return "tool_use";
  return finish == "content_filter" ? "refusal" : finish;
}

json stop_sequence(const mock_message& m) {
  return m.stop_sequence.empty() ? json(nullptr) : json(m.stop_sequence);
}

/// Anthropic's input tokens leave out what the cache had.
json usage_of(const token_usage& u, std::uint64_t output) {
  return {{"input_tokens", u.input - std::min(u.input, u.cached + u.cache_written)},
          {"cache_read_input_tokens", u.cached},
          {"cache_creation_input_tokens", u.cache_written},
          {"output_tokens", output},
          {"service_tier", "standard"}};
}

/// The arguments as an object; what is none cannot be sent whole, as Anthropic has no text there.
json input_of(const tool_call_message& call) {
  auto parsed = parse_json(call.arguments);
  return parsed && parsed->is_object() ? std::move(*parsed) : json::object();
}

/// Any client must send it back unchanged; it has no other meaning here.
std::string signature_of(const mock_message& m) {
  return "mock-signature-" + m.id;
}

json content_of(const mock_message& m) {
  auto out = json::array();
  auto& r = m.reply;
  if (!r.reasoning.empty())
    out.push_back(
      {{"type", "thinking"}, {"thinking", r.reasoning}, {"signature", signature_of(m)}});
  if (!r.text.empty())
    out.push_back({{"type", "text"}, {"text", r.text}});
  for (auto& call : r.tool_calls)
    out.push_back(
      {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
  return out;
}

json message_of(const mock_message& m) {
  return {
    {"id", "msg_" + m.id}, {"type", "message"}, {"role", "assistant"}, {"model", m.reply.model}};
}

std::string whole(const mock_message& m) {
  auto out = message_of(m);
  out["content"] = content_of(m);
  out["stop_reason"] = stop_reason(m);
  out["stop_sequence"] = stop_sequence(m);
  out["usage"] = usage_of(m.reply.usage, m.reply.usage.output);
  return dump_json(out);
}

class event_writer {
public:
  void begin(const mock_message& m) {
    auto message = message_of(m);
    message["content"] = json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = usage_of(m.reply.usage, 1);
    out.push_back(named_event({{"type", "message_start"}, {"message", message}}));
  }

  void block(const json& start) {
    out.push_back(
      named_event({{"type", "content_block_start"}, {"index", index_}, {"content_block", start}}));
  }

  void delta(std::string_view type, std::string_view member, std::string_view text) {
    out.push_back("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"
                  + std::to_string(index_) + ",\"delta\":{\"type\":\"" + std::string{type} + "\",\""
                  + std::string{member} + "\":" + json_text(text) + "}}\n\n");
  }

  void stop() { out.push_back(named_event({{"type", "content_block_stop"}, {"index", index_++}})); }

  void end(const mock_message& m) {
    out.push_back(named_event(
      {{"type", "message_delta"},
       {"delta", {{"stop_reason", stop_reason(m)}, {"stop_sequence", stop_sequence(m)}}},
       {"usage", usage_of(m.reply.usage, m.reply.usage.output)}}));
    out.push_back(named_event({{"type", "message_stop"}}));
  }

  std::vector<std::string> out;

private:
  std::size_t index_ = 0;
};

void write_thinking(event_writer& w, const mock_message& m) {
  w.block({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
  for (auto part : parts_of(m.reply.reasoning, m.chunk_bytes))
    w.delta("thinking_delta", "thinking", part);
  w.delta("signature_delta", "signature", signature_of(m));
  w.stop();
}

std::vector<std::string> events(const mock_message& m) {
  event_writer w;
  w.begin(m);
  w.out.emplace_back("event: ping\ndata: {\"type\":\"ping\"}\n\n");
  if (!m.reply.reasoning.empty())
    write_thinking(w, m);
  if (!m.reply.text.empty()) {
    w.block({{"type", "text"}, {"text", ""}});
    for (auto part : parts_of(m.reply.text, m.chunk_bytes))
      w.delta("text_delta", "text", part);
    w.stop();
  }
  for (auto& call : m.reply.tool_calls) {
    w.block(
      {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", json::object()}});
    for (auto part : parts_of(call.arguments, m.chunk_bytes))
      w.delta("input_json_delta", "partial_json", part);
    w.stop();
  }
  w.end(m);
  return std::move(w.out);
}

}  // namespace

const mock_wire& mock_messages() noexcept {
  static constexpr mock_wire wire{
    wire_format::anthropic, "toolu_", "request-id", read, whole, events};
  return wire;
}

}  // namespace troupe

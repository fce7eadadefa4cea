// OpenAI's chat completions, the server's side.
// Source: platform.openai.com/docs/api-reference/chat
#include "runtime/model/mock_wire.hpp"

namespace troupe {
namespace {

mock_error missing(const std::string& name) {
  return {400, "Missing required parameter: '" + name + "'.", "invalid_request_error", name,
          "missing_required_parameter"};
}

role who(const json& message) {
  auto name = string_or(message, "role");
  if (name == "assistant")
    return role::assistant;
  if (name == "tool" || name == "function")
    return role::tool;
  return name == "user" ? role::user : role::system;
}

tl::expected<mock_ask, mock_error> read(const json& body) {
  mock_ask out;
  out.model = string_or(body, "model");
  if (out.model.empty())
    return tl::unexpected(
      mock_error{400, "you must provide a model parameter", "invalid_request_error", "model"});
  auto messages = body.find("messages");
  if (messages == body.end())
    return tl::unexpected(missing("messages"));
  if (!messages->is_array() || messages->empty())
    return tl::unexpected(
      mock_error{400, "Invalid 'messages': expected an array with at least one object.",
                 "invalid_request_error", "messages", "invalid_type"});
  read_conversation(*messages, who, false, out);
  out.stream = flag_in(body, "stream");
  out.include_usage = flag_in(body.value("stream_options", json{}), "include_usage");
  out.max_tokens = count_in(body, "max_completion_tokens");
  if (!out.max_tokens)
    out.max_tokens = count_in(body, "max_tokens");
  out.stop = texts_in(body, "stop");
  return out;
}

// Replies are written as text: to build objects for it would be a third of a small answer's cost.

std::string usage_of(const token_usage& u) {
  return R"({"prompt_tokens":)" + std::to_string(u.input) + R"(,"completion_tokens":)"
         + std::to_string(u.output) + R"(,"total_tokens":)" + std::to_string(u.total())
         + R"(,"prompt_tokens_details":{"cached_tokens":)" + std::to_string(u.cached)
         + R"(,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":)"
         + std::to_string(u.reasoning) + R"(,"audio_tokens":0}})";
}

std::string call_of(const tool_call_message& call) {
  return R"({"id":)" + json_text(call.id) + R"(,"type":"function","function":{"name":)"
         + json_text(call.name) + R"(,"arguments":)" + json_text(call.arguments) + "}}";
}

std::string message_of(const model_reply& r) {
  std::string out = R"({"role":"assistant","content":)";
  out += r.text.empty() && !r.tool_calls.empty() ? "null" : json_text(r.text);
  out += R"(,"refusal":null,"annotations":[])";
  if (!r.reasoning.empty())
    out += R"(,"reasoning_content":)" + json_text(r.reasoning);
  for (std::size_t i = 0; i < r.tool_calls.size(); ++i)
    out += (i == 0 ? R"(,"tool_calls":[)" : ",") + call_of(r.tool_calls[i]);
  return out += r.tool_calls.empty() ? "}" : "]}";
}

std::string whole(const mock_message& m) {
  return R"({"id":"chatcmpl-)" + m.id + R"(","object":"chat.completion","created":)"
         + std::to_string(m.created) + R"(,"model":)" + json_text(m.reply.model)
         + R"(,"choices":[{"index":0,"message":)" + message_of(m.reply)
         + R"(,"logprobs":null,"finish_reason":)" + json_text(m.reply.finish_reason)
         + R"(}],"usage":)" + usage_of(m.reply.usage)
         + R"(,"service_tier":"default","system_fingerprint":"fp_mock"})";
}

/// Writes the chunks of one reply, which differ in little.
class chunk_writer {
public:
  explicit chunk_writer(const mock_message& m)
    : head_{"data: {\"id\":\"chatcmpl-" + m.id
            + "\",\"object\":\"chat.completion.chunk\",\"created\":" + std::to_string(m.created)
            + ",\"model\":" + json_text(m.reply.model)
            + ",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_mock\""},
      no_usage_{m.include_usage ? ",\"usage\":null" : ""} {}

  void delta(const std::string& delta, const std::string& finish = "null") {
    out.push_back(head_ + no_usage_ + ",\"choices\":[{\"index\":0,\"delta\":" + delta
                  + ",\"logprobs\":null,\"finish_reason\":" + finish + "}]}\n\n");
  }

  void usage(const token_usage& u) {
    out.push_back(head_ + ",\"choices\":[],\"usage\":" + usage_of(u) + "}\n\n");
  }

  void call(std::size_t index, const tool_call_message& c, std::size_t chunk_bytes) {
    auto at = "{\"tool_calls\":[{\"index\":" + std::to_string(index);
    delta(at + ",\"id\":" + json_text(c.id) + R"(,"type":"function","function":{"name":)"
          + json_text(c.name) + ",\"arguments\":\"\"}}]}");
    for (auto part : parts_of(c.arguments, chunk_bytes))
      delta(at + ",\"function\":{\"arguments\":" + json_text(part) + "}}]}");
  }

  std::vector<std::string> out;

private:
  std::string head_;
  std::string no_usage_;
};

std::vector<std::string> events(const mock_message& m) {
  chunk_writer w{m};
  auto& r = m.reply;
  auto content = r.text.empty() && !r.tool_calls.empty() ? "null" : "\"\"";
  w.delta(std::string{R"({"role":"assistant","content":)"} + content + ",\"refusal\":null}");
  for (auto part : parts_of(r.reasoning, m.chunk_bytes))
    w.delta("{\"reasoning_content\":" + json_text(part) + "}");
  for (auto part : parts_of(r.text, m.chunk_bytes))
    w.delta("{\"content\":" + json_text(part) + "}");
  for (std::size_t i = 0; i < r.tool_calls.size(); ++i)
    w.call(i, r.tool_calls[i], m.chunk_bytes);
  w.delta("{}", json_text(r.finish_reason));
  if (m.include_usage)
    w.usage(r.usage);
  w.out.emplace_back("data: [DONE]\n\n");
  return std::move(w.out);
}

}  // namespace

const mock_wire& mock_chat() noexcept {
  static constexpr mock_wire wire{
    wire_format::openai_chat, "call_", "x-request-id", read, whole, events};
  return wire;
}

}  // namespace troupe

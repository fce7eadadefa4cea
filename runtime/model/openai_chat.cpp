// OpenAI's chat completions, as OpenAI and the servers compatible with it speak them.
// Source  OpenAI API reference, "Create chat completion"; the deviations of Gemini, Ollama, vLLM,
//         llama.cpp and OpenRouter that are named where they are met.
#include "runtime/model/openai.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"

#include <string>
#include <utility>

namespace troupe::openai {
namespace {

// -- request -------------------------------------------------------------------------------------

void append_tool_calls(std::string& out, const std::vector<tool_call_message>& calls) {
  out += ",\"tool_calls\":[";
  for (auto& call : calls) {
    out += &call == &calls.front() ? "{\"id\":" : ",{\"id\":";
    append_json_string(out, call.id);
    out += ",\"type\":\"function\",\"function\":{\"name\":";
    append_json_string(out, call.name);
    out += ",\"arguments\":";
    append_json_string(out, call.arguments.empty() ? "{}" : call.arguments);
    out += "}}";
  }
  out += ']';
}

/// True for OpenAI's own models, whose newer ones refuse max_tokens. gpt-oss is served by others.
bool wants_max_completion_tokens(std::string_view model) {
  if (auto slash = model.rfind('/'); slash != std::string_view::npos)
    model.remove_prefix(slash + 1);
  if (model.starts_with("gpt-oss"))
    return false;
  auto is_o_series = model.size() > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9';
  return is_o_series || model.starts_with("gpt-") || model.starts_with("chatgpt-");
}

/// Writes `"name":value` members; a member of extra_body takes the place of ours.
class member_writer {
public:
  member_writer(std::string& out, const json& extra) : out_{out}, extra_{extra} {}

  bool begin(std::string_view name) {
    if (extra_.is_object() && extra_.contains(name))
      return false;
    write_name(name);
    return true;
  }

  void extras() {
    if (!extra_.is_object())
      return;
    for (auto& [name, value] : extra_.items())
      if (name != "messages" && name != "stream" && !value.is_null()) {
        write_name(name);
        out_ += dump_json(value);
      }
  }

private:
  void write_name(std::string_view name) {
    out_ += first_ ? '{' : ',';
    first_ = false;
    append_json_string(out_, name);
    out_ += ':';
  }

  std::string& out_;
  const json& extra_;
  bool first_ = true;
};

void append_tools(std::string& out, const std::vector<tool_spec>& tools) {
  out += '[';
  for (auto& tool : tools) {
    out += &tool == &tools.front() ? "" : ",";
    out += "{\"type\":\"function\",\"function\":{\"name\":";
    append_json_string(out, tool.name);
    out += ",\"description\":";
    append_json_string(out, tool.description);
    out += ",\"parameters\":";
    out += tool.parameters.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    out += "}}";
  }
  out += ']';
}

void append_strings(std::string& out, const std::vector<std::string>& strings) {
  out += '[';
  for (auto& s : strings) {
    out += &s == &strings.front() ? "" : ",";
    append_json_string(out, s);
  }
  out += ']';
}

// -- reply ---------------------------------------------------------------------------------------

tl::unexpected<model_failure> bad_reply(std::string detail) {
  model_failure failure;
  failure.kind = failure_class::bad_reply;
  failure.detail = std::move(detail);
  return tl::unexpected<model_failure>(std::move(failure));
}

const json& member(const json& object, std::string_view name) {
  static const json none;
  if (!object.is_object())
    return none;
  auto it = object.find(name);
  return it == object.end() ? none : *it;
}

std::string why_not_json(std::string_view body, const error& e) {
  auto start = trim(body);
  auto shown = ": " + one_line(body, 160);
  if (start.empty())
    return "the reply has no body";
  if (start.front() == '<')
    return "the reply is a web page, not JSON (check the base URL)" + shown;
  if (start.starts_with("data:"))
    return "the reply is a stream of events, which was not asked for" + shown;
  auto ends_within = [&](std::string_view what) {
    return e.detail.find(what) != std::string::npos;
  };
  if (start.front() == '{'
      && (ends_within("unexpected end of input") || ends_within("missing closing quote")))
    return "the reply is cut short after " + std::to_string(body.size()) + " bytes" + shown;
  return "the reply is not JSON (" + one_line(e.detail, 120) + ")" + shown;
}

/// A string, an array of parts ({"type":"text","text":...} or strings), or nothing.
std::string text_of(const json& content) {
  if (content.is_string())
    return content.get<std::string>();
  std::string out;
  if (content.is_array())
    for (auto& part : content)
      out += part.is_string() ? part.get<std::string>() : string_or(part, "text");
  return out;
}

std::string arguments_of(const json& arguments) {
  if (arguments.is_string() && !arguments.get_ref<const std::string&>().empty())
    return arguments.get<std::string>();
  if (arguments.is_object())
    return dump_json(arguments);
  return "{}";
}

/// Adds the message's calls. Returns what is wrong, or "".
std::string read_tool_calls(const json& calls, std::vector<tool_call_message>& out) {
  if (calls.is_null())
    return {};
  if (!calls.is_array())
    return "message.tool_calls is not an array";
  for (auto& call : calls) {
    auto& function = member(call, "function");
    tool_call_message read{string_or(call, "id"), string_or(function, "name"),
                           arguments_of(member(function, "arguments"))};
    if (read.name.empty())
      return "tool call " + std::to_string(out.size()) + " names no function";
    if (read.id.empty())
      read.id = "call_" + std::to_string(out.size());
    out.push_back(std::move(read));
  }
  return {};
}

/// A count that no reply can have is a server's mistake, and would spoil every sum.
std::uint64_t count_of(const json& number) {
  constexpr double most_believed = 1e9;
  if (!number.is_number())
    return 0;
  auto x = number.get<double>();
  return x > 0 && x <= most_believed ? static_cast<std::uint64_t>(x) : 0;
}

token_usage usage_of(const json& usage) {
  return {.input = count_of(member(usage, "prompt_tokens")),
          .output = count_of(member(usage, "completion_tokens")),
          .cached = count_of(member(member(usage, "prompt_tokens_details"), "cached_tokens")),
          .reasoning =
            count_of(member(member(usage, "completion_tokens_details"), "reasoning_tokens"))};
}

/// An error inside a 200, as OpenRouter and some gateways send it.
tl::unexpected<model_failure> error_inside(const json& holder) {
  auto e = read_error(holder);
  model_failure failure;
  failure.kind =
    e.status >= 400 || !e.code.empty() ? class_of(e.status, e) : failure_class::unknown;
  if (failure.kind == failure_class::unknown)
    failure.kind = failure_class::bad_reply;
  failure.detail = "the server answered 200 with an error: " + one_line(e.message, 300);
  if (!e.code.empty())
    failure.detail += " (" + one_line(e.code, 60) + ")";
  return tl::unexpected<model_failure>(std::move(failure));
}

tl::expected<model_reply, model_failure> read_choice(const json& choice, const json& body) {
  auto& message = member(choice, "message");
  if (!message.is_object())
    return bad_reply("choices[0] has no message: " + one_line(dump_json(choice), 160));
  model_reply reply;
  reply.text = text_of(member(message, "content"));
  if (reply.text.empty())
    reply.text = string_or(message, "refusal");
  if (auto wrong = read_tool_calls(member(message, "tool_calls"), reply.tool_calls); !wrong.empty())
    return bad_reply(wrong + ": " + one_line(dump_json(message), 160));
  reply.finish_reason = string_or(choice, "finish_reason");
  reply.model = string_or(body, "model");
  reply.usage = usage_of(member(body, "usage"));
  return reply;
}

}  // namespace

void encode_message(std::string& out, const chat_message& message) {
  out += "{\"role\":\"";
  out += to_string(message.from);
  out += '"';
  if (message.from == role::tool) {
    out += ",\"tool_call_id\":";
    append_json_string(out, message.tool_call_id);
  }
  out += ",\"content\":";
  // OpenAI wants null, and some servers refuse "", beside tool calls.
  if (message.content.empty() && !message.tool_calls.empty())
    out += "null";
  else
    append_json_string(out, message.content);
  if (!message.tool_calls.empty())
    append_tool_calls(out, message.tool_calls);
  out += '}';
}

std::string encode_head(const model_settings& settings) {
  std::string out;
  member_writer members{out, settings.extra_body};
  if (members.begin("model"))
    append_json_string(out, settings.model);
  if (settings.temperature && members.begin("temperature"))
    out += dump_json(*settings.temperature);
  auto max_tokens =
    wants_max_completion_tokens(settings.model) ? "max_completion_tokens" : "max_tokens";
  if (settings.max_output_tokens && members.begin(max_tokens))
    out += std::to_string(*settings.max_output_tokens);
  if (settings.seed && members.begin("seed"))
    out += std::to_string(*settings.seed);
  if (!settings.stop.empty() && members.begin("stop"))
    append_strings(out, settings.stop);
  if (!settings.tools.empty() && members.begin("tools"))
    append_tools(out, settings.tools);
  members.extras();
  out += out.empty() ? "{\"messages\":[" : ",\"messages\":[";
  return out;
}

tl::expected<model_reply, model_failure> decode(std::string_view body) {
  auto parsed = parse_json(body, {.max_bytes = 64u << 20, .max_depth = 64});
  if (!parsed)
    return bad_reply(why_not_json(body, parsed.error()));
  if (!parsed->is_object())
    return bad_reply("the reply is not a JSON object: " + one_line(body, 160));
  if (!member(*parsed, "error").is_null())
    return error_inside(*parsed);
  auto& choices = member(*parsed, "choices");
  if (!choices.is_array() || choices.empty())
    return bad_reply("the reply has no choices: " + one_line(body, 160));
  if (!member(choices[0], "error").is_null())
    return error_inside(choices[0]);
  return read_choice(choices[0], *parsed);
}

}  // namespace troupe::openai

namespace troupe {
namespace {

class openai_chat_codec final : public codec {
public:
  [[nodiscard]] message_encoder encoder() const override { return openai::encode_message; }

  [[nodiscard]] std::string_view path() const override { return "/chat/completions"; }

  [[nodiscard]] encoded_request encode(const model_request& request) const override {
    return {openai::encode_head(*request.settings), request.messages, "]}"};
  }

  [[nodiscard]] header_list authorize(std::string_view key) const override {
    key = trim(key);  // keys read from files end in a newline
    if (key.empty())
      return {};
    return {{"authorization", "Bearer " + std::string{key}}};
  }

  [[nodiscard]] tl::expected<model_reply, model_failure>
  decode(std::string_view body) const override {
    return openai::decode(body);
  }

  [[nodiscard]] model_failure classify(unsigned status, const header_list& headers,
                                       std::string_view body) const override {
    return openai::classify(status, headers, body);
  }
};

}  // namespace

const codec& openai_codec() {
  static const openai_chat_codec instance;
  return instance;
}

}  // namespace troupe

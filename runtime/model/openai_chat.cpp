// OpenAI's chat completions, as OpenAI and the servers compatible with it speak them.
// Source  OpenAI API reference, "Create chat completion"; Azure OpenAI, "v1 API" and "Chat
//         completions - Create"; the deviations of Gemini, Ollama, vLLM, llama.cpp and OpenRouter
//         that are named where they are met.
#include "runtime/model/openai_chat.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/codecs.hpp"
#include "runtime/model/plain_reply.hpp"
#include "runtime/model/reply_reader.hpp"
#include "runtime/model/request_writer.hpp"
#include "runtime/model/server_error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace troupe::openai {
namespace {

// -- request -------------------------------------------------------------------------------------

void append_tool_call(std::string& out, const tool_call_message& call) {
  out += "{\"id\":";
  append_json_string(out, call.id);
  out += ",\"type\":\"function\",\"function\":{\"name\":";
  append_json_string(out, call.name);
  out += ",\"arguments\":";
  append_json_string(out, call.arguments.empty() ? "{}" : call.arguments);
  out += '}';
  append_members_of(out, call.kept);
  out += '}';
}

void append_image(std::string& out, const std::string& image) {
  out += ",{\"type\":\"image_url\",\"image_url\":{\"url\":";
  append_json_string(out, image);
  out += "}}";
}

void append_content(std::string& out, const chat_message& message) {
  // OpenAI wants null, and some servers refuse "", beside tool calls.
  if (message.content.empty() && !message.tool_calls.empty()) {
    out += "null";
    return;
  }
  if (message.images.empty()) {
    append_json_string(out, message.content);
    return;
  }
  out += "[{\"type\":\"text\",\"text\":";
  append_json_string(out, message.content);
  out += '}';
  for (auto& image : message.images)
    append_image(out, image);
  out += ']';
}

void append_tool(std::string& out, const tool_spec& tool) {
  out += "{\"type\":\"function\",\"function\":{\"name\":";
  append_json_string(out, tool.name);
  out += ",\"description\":";
  append_json_string(out, tool.description);
  out += ",\"parameters\":";
  append_schema(out, tool.parameters);
  out += "}}";
}

void append_choice(std::string& out, const tool_choice& choice) {
  switch (choice.how) {
  case tool_choice::mode::automatic:
    out += "\"auto\"";
    return;
  case tool_choice::mode::none:
    out += "\"none\"";
    return;
  case tool_choice::mode::required:
    out += "\"required\"";
    return;
  case tool_choice::mode::named:
    out += "{\"type\":\"function\",\"function\":{\"name\":";
    append_json_string(out, choice.name);
    out += "}}";
  }
}

void append_output(std::string& out, const output_schema& output) {
  out += "{\"type\":\"json_schema\",\"json_schema\":{\"name\":";
  append_json_string(out, output.name);
  out += output.strict ? ",\"strict\":true,\"schema\":" : ",\"schema\":";
  append_schema(out, output.schema);
  out += "}}";
}

void append_tool_members(std::string& out, member_writer& members, const model_settings& settings) {
  if (settings.tools.empty())
    return;
  if (members.begin("tools"))
    append_array(out, settings.tools, append_tool);
  if (settings.choice != tool_choice{} && members.begin("tool_choice"))
    append_choice(out, settings.choice);
  if (settings.parallel_tool_calls && members.begin("parallel_tool_calls"))
    out += *settings.parallel_tool_calls ? "true" : "false";
}

void append_sampling(std::string& out, member_writer& members, const model_settings& settings,
                     bool own_names) {
  if (settings.temperature && members.begin("temperature"))
    out += dump_json(*settings.temperature);
  if (settings.max_output_tokens
      && members.begin(own_names ? "max_completion_tokens" : "max_tokens"))
    out += std::to_string(*settings.max_output_tokens);
  if (settings.seed && members.begin("seed"))
    out += std::to_string(*settings.seed);
  if (!settings.reasoning_effort.empty() && members.begin("reasoning_effort"))
    append_json_string(out, settings.reasoning_effort);
  if (!settings.stop.empty() && !refuses_stop(settings.model) && members.begin("stop"))
    append_strings(out, settings.stop);
}

std::string_view without_vendor(std::string_view model) {
  auto slash = model.rfind('/');
  return slash == std::string_view::npos ? model : model.substr(slash + 1);
}

bool is_o_series(std::string_view model) {
  return model.size() > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9';
}

// -- reply ---------------------------------------------------------------------------------------

/// The members of `object` that are not in `known`, as text; "" when there are none.
template <std::size_t N>
std::string unknown_members(const json& object, const std::array<std::string_view, N>& known) {
  auto kept = json::object();
  for (auto& [name, value] : object.items())
    if (!value.is_null() && std::find(known.begin(), known.end(), name) == known.end())
      kept[name] = value;
  return kept.empty() ? std::string{} : dump_json(kept);
}

/// Gemini signs its calls in extra_content, and refuses the next turn without it.
std::string kept_of_call(const json& call) {
  constexpr std::array<std::string_view, 4> known = {"id", "type", "function", "index"};
  return unknown_members(call, known);
}

/// Reasoning goes back in a turn with tool calls, where DeepSeek, Kimi and vLLM's interleaved
/// thinking ask for it; behind a plain text some servers refuse it. Other members that we do not
/// know (OpenRouter's reasoning_details) always go back.
std::string kept_of_message(const json& message, bool has_calls) {
  constexpr std::array<std::string_view, 9> known = {
    "role",        "content", "refusal",           "tool_calls", "function_call",
    "annotations", "audio",   "reasoning_content", "reasoning"};
  constexpr auto without_reasoning = known.size() - 2;
  if (!has_calls)
    return unknown_members(message, known);
  std::array<std::string_view, without_reasoning> less{};
  std::copy_n(known.begin(), without_reasoning, less.begin());
  return unknown_members(message, less);
}

/// Adds the message's calls. Returns what is wrong, or "".
std::string read_tool_calls(const json& calls, std::vector<tool_call_message>& out) {
  if (calls.is_null())
    return {};
  if (!calls.is_array())
    return "message.tool_calls is not an array";
  for (auto& call : calls) {
    auto& function = member(call, "function");
    tool_call_message read{call_id_or_position(string_or(call, "id"), out.size()),
                           string_or(function, "name"),
                           arguments_text(member(function, "arguments")), kept_of_call(call)};
    if (read.name.empty())
      return "tool call " + std::to_string(out.size()) + " names no function";
    out.push_back(std::move(read));
  }
  return {};
}

/// The prompt's tokens include those of the cache. OpenRouter says how many were put into it.
token_usage usage_of(const json& usage) {
  auto& prompt = member(usage, "prompt_tokens_details");
  return {.input = count_of(member(usage, "prompt_tokens")),
          .output = count_of(member(usage, "completion_tokens")),
          .cached = count_of(member(prompt, "cached_tokens")),
          .reasoning =
            count_of(member(member(usage, "completion_tokens_details"), "reasoning_tokens")),
          .cache_written = count_of(member(prompt, "cache_write_tokens"))};
}

model_outcome read_choice(const json& choice, const json& body) {
  auto& message = member(choice, "message");
  if (!message.is_object())
    return bad_reply("choices[0] has no message: " + one_line(dump_json(choice), 160));
  model_reply reply;
  reply.text = text_of(member(message, "content"));
  if (reply.text.empty())
    reply.text = string_or(message, "refusal");
  reply.reasoning = string_or(message, "reasoning_content", string_or(message, "reasoning"));
  if (auto wrong = read_tool_calls(member(message, "tool_calls"), reply.tool_calls); !wrong.empty())
    return bad_reply(wrong + ": " + one_line(dump_json(message), 160));
  reply.kept = kept_of_message(message, !reply.tool_calls.empty());
  reply.finish_reason = string_or(choice, "finish_reason");
  reply.model = string_or(body, "model");
  reply.usage = usage_of(member(body, "usage"));
  return reply;
}

}  // namespace

bool is_own_model(std::string_view model) {
  model = without_vendor(model);
  if (model.starts_with("gpt-oss"))
    return false;
  return is_o_series(model) || model.starts_with("gpt-") || model.starts_with("chatgpt-");
}

bool refuses_stop(std::string_view model) {
  model = without_vendor(model);
  return is_o_series(model)
         || (model.starts_with("gpt-5") && model.find("chat") == std::string_view::npos);
}

encoder_state encode_message(std::string& out, const chat_message& message, encoder_state before) {
  out += before == 0 ? "{\"role\":\"" : ",{\"role\":\"";
  out += to_string(message.from);
  out += '"';
  if (message.from == role::tool) {
    out += ",\"tool_call_id\":";
    append_json_string(out, message.tool_call_id);
  }
  out += ",\"content\":";
  append_content(out, message);
  if (!message.tool_calls.empty()) {
    out += ",\"tool_calls\":";
    append_array(out, message.tool_calls, append_tool_call);
  }
  append_members_of(out, message.kept);
  out += '}';
  return 1;
}

std::string encode_head(const model_settings& settings, const codec_options& options,
                        delivery how) {
  std::string out;
  member_writer members{out, settings.extra_body, {"messages", "stream"}};
  if (members.begin("model"))
    append_json_string(out, settings.model);
  append_sampling(out, members, settings, options.azure || is_own_model(settings.model));
  append_tool_members(out, members, settings);
  if (settings.output && members.begin("response_format"))
    append_output(out, *settings.output);
  if (how == delivery::streamed) {
    members.name("stream");
    out += "true";
    if (members.begin("stream_options"))
      out += "{\"include_usage\":true}";
  }
  members.extras();
  members.name("messages");
  out += '[';
  return out;
}

model_outcome read_reply(const json& body) {
  auto& choices = member(body, "choices");
  if (!choices.is_array() || choices.empty())
    return bad_reply("the reply has no choices: " + one_line(dump_json(body), 160));
  if (is_error(choices[0]))
    return tl::unexpected(failure_inside(choices[0], "the server answered 200 with an error"));
  return read_choice(choices[0], body);
}

}  // namespace troupe::openai

namespace troupe {
namespace {

class openai_chat_codec final : public codec {
public:
  explicit openai_chat_codec(codec_options options) : options_{std::move(options)} {}

  [[nodiscard]] message_encoder encoder() const override { return openai::encode_message; }

  [[nodiscard]] encoded_request encode(const model_request& request, delivery how) const override {
    return {target_of(request.settings->model),
            openai::encode_head(*request.settings, options_, how), request.messages, "]}"};
  }

  [[nodiscard]] header_list headers(std::string_view key) const override {
    return openai_key(key, options_.azure);
  }

  [[nodiscard]] model_outcome decode(std::string_view body) const override {
    if (auto plain = openai::read_plain_reply(body))
      return *std::move(plain);
    auto read = read_body(body);
    return read ? openai::read_reply(*read) : model_outcome{tl::unexpected(read.error())};
  }

  [[nodiscard]] std::unique_ptr<reply_assembler> assembler() const override {
    return openai::make_chat_assembler();
  }

private:
  [[nodiscard]] std::string target_of(std::string_view model) const {
    if (!options_.azure || options_.version.empty())
      return "/chat/completions";
    return "/openai/deployments/" + percent_encoded(model)
           + "/chat/completions?api-version=" + percent_encoded(options_.version);
  }

  codec_options options_;
};

}  // namespace

const codec& openai_codec() {
  static const openai_chat_codec instance{{}};
  return instance;
}

std::shared_ptr<const codec> make_chat_codec(const codec_options& options) {
  return std::make_shared<openai_chat_codec>(options);
}

}  // namespace troupe

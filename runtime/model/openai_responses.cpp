// OpenAI's Responses API, as OpenAI, Azure and llama.cpp speak it.
// Source  OpenAI API reference, "Create a model response"; OpenAI guide, "Reasoning models".
#include "runtime/model/openai_responses.hpp"

#include "runtime/model/chat_text.hpp"
#include "runtime/model/codecs.hpp"
#include "runtime/model/openai_chat.hpp"
#include "runtime/model/reply_reader.hpp"
#include "runtime/model/request_writer.hpp"
#include "runtime/model/server_error.hpp"

#include <algorithm>
#include <utility>

namespace troupe::responses {
namespace {

// -- items ---------------------------------------------------------------------------------------

void write_message(std::string& out, const chat_message& message) {
  out += "{\"role\":\"";
  out += to_string(message.from);
  out += "\",\"content\":";
  if (message.images.empty()) {
    append_json_string(out, message.content);
    out += '}';
    return;
  }
  out += "[{\"type\":\"input_text\",\"text\":";
  append_json_string(out, message.content);
  out += '}';
  for (auto& image : message.images) {
    out += ",{\"type\":\"input_image\",\"image_url\":";
    append_json_string(out, image);
    out += '}';
  }
  out += "]}";
}

void write_call(std::string& out, const tool_call_message& call) {
  out += "{\"type\":\"function_call\",\"call_id\":";
  append_json_string(out, call.id);
  out += ",\"name\":";
  append_json_string(out, call.name);
  out += ",\"arguments\":";
  append_json_string(out, call.arguments.empty() ? "{}" : call.arguments);
  out += '}';
}

void write_output(std::string& out, const chat_message& message) {
  out += "{\"type\":\"function_call_output\",\"call_id\":";
  append_json_string(out, message.tool_call_id);
  out += ",\"output\":";
  append_json_string(out, message.content);
  out += '}';
}

std::string text_in(const json& item) {
  std::string out;
  if (auto& content = member(item, "content"); content.is_array())
    for (auto& part : content)
      out += string_or(part, "text", string_or(part, "refusal"));
  return out;
}

/// True when the message is still the reply that `items` came with.
bool is_unedited(const json& items, const chat_message& message) {
  std::string text;
  std::vector<std::string> ids;
  for (auto& item : items) {
    auto type = string_or(item, "type");
    if (type == "message")
      text += text_in(item);
    if (type == "function_call")
      ids.push_back(string_or(item, "call_id"));
  }
  auto same_call = [](const std::string& id, const tool_call_message& c) { return id == c.id; };
  return text == message.content
         && std::equal(ids.begin(), ids.end(), message.tool_calls.begin(), message.tool_calls.end(),
                       same_call);
}

/// A reasoning item is refused without the items that followed it: it goes back with the very reply
/// that it came with, or not at all.
bool write_kept(std::string& out, const chat_message& message) {
  if (message.kept.empty())
    return false;
  auto kept = parse_json(message.kept);
  if (!kept || !kept->is_array() || kept->empty() || !is_unedited(*kept, message))
    return false;
  append_array(out, *kept, [](std::string& to, auto& item) { to += dump_json(item); });
  return true;
}

// -- head ----------------------------------------------------------------------------------------

void append_tool(std::string& out, const tool_spec& tool) {
  out += "{\"type\":\"function\",\"name\":";
  append_json_string(out, tool.name);
  out += ",\"description\":";
  append_json_string(out, tool.description);
  out += ",\"strict\":false,\"parameters\":";
  append_schema(out, tool.parameters);
  out += '}';
}

void append_choice(std::string& out, const tool_choice& choice) {
  constexpr std::string_view words[] = {"\"auto\"", "\"none\"", "\"required\""};
  if (choice.how != tool_choice::mode::named) {
    out += words[static_cast<std::size_t>(choice.how)];
    return;
  }
  out += "{\"type\":\"function\",\"name\":";
  append_json_string(out, choice.name);
  out += '}';
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

void append_output(std::string& out, const output_schema& output) {
  out += "{\"format\":{\"type\":\"json_schema\",\"name\":";
  append_json_string(out, output.name);
  out += output.strict ? ",\"strict\":true,\"schema\":" : ",\"schema\":";
  append_schema(out, output.schema);
  out += "}}";
}

void append_reasoning(std::string& out, member_writer& members, const model_settings& settings) {
  if (!settings.reasoning_effort.empty() && members.begin("reasoning")) {
    out += "{\"effort\":";
    append_json_string(out, settings.reasoning_effort);
    out += '}';
  }
  if (members.begin("store"))
    out += "false";
  // Models that do not reason refuse it; they are those that take stop sequences elsewhere.
  if (openai::refuses_stop(settings.model) && members.begin("include"))
    out += "[\"reasoning.encrypted_content\"]";
}

// -- reply ---------------------------------------------------------------------------------------

token_usage usage_of(const json& usage) {
  return {.input = count_of(member(usage, "input_tokens")),
          .output = count_of(member(usage, "output_tokens")),
          .cached = count_of(member(member(usage, "input_tokens_details"), "cached_tokens")),
          .reasoning =
            count_of(member(member(usage, "output_tokens_details"), "reasoning_tokens"))};
}

/// Returns what is wrong with the item, or "".
std::string read_item(const json& item, model_reply& reply) {
  auto type = string_or(item, "type");
  if (type == "message")
    reply.text += text_in(item);
  if (type == "reasoning")
    reply.reasoning += text_of(member(item, "summary")) + text_of(member(item, "content"));
  if (type != "function_call")
    return {};
  auto name = string_or(item, "name");
  if (name.empty())
    return "a function_call names no function";
  auto id = string_or(item, "call_id", string_or(item, "id"));
  reply.tool_calls.push_back({call_id_or_position(std::move(id), reply.tool_calls.size()),
                              std::move(name),
                              arguments_text(member(item, "arguments")),
                              {}});
  return {};
}

bool must_go_back(const json& item) {
  auto type = string_or(item, "type");
  return type != "message" && type != "function_call";
}

/// In the words of chat completions.
std::string finish_word(const json& body, bool has_calls) {
  auto reason = string_or(member(body, "incomplete_details"), "reason");
  if (reason == "max_output_tokens")
    return "length";
  if (!reason.empty())
    return reason;
  return has_calls ? "tool_calls" : "stop";
}

}  // namespace

encoder_state encode_message(std::string& out, const chat_message& message, encoder_state before) {
  if (before != 0)
    out += ',';
  if (message.from == role::tool) {
    write_output(out, message);
    return 1;
  }
  std::string kept;
  if (write_kept(kept, message)) {
    out.append(kept, 1, kept.size() - 2);
    return 1;
  }
  auto has_message = !message.content.empty() || message.tool_calls.empty();
  if (has_message)
    write_message(out, message);
  for (auto& call : message.tool_calls) {
    out += has_message || &call != &message.tool_calls.front() ? "," : "";
    write_call(out, call);
  }
  return 1;
}

std::string encode_head(const model_settings& settings, delivery how) {
  std::string out;
  member_writer members{out, settings.extra_body, {"input", "stream"}};
  if (members.begin("model"))
    append_json_string(out, settings.model);
  if (settings.temperature && members.begin("temperature"))
    out += dump_json(*settings.temperature);
  if (settings.max_output_tokens && members.begin("max_output_tokens"))
    out += std::to_string(*settings.max_output_tokens);
  append_tool_members(out, members, settings);
  if (settings.output && members.begin("text"))
    append_output(out, *settings.output);
  append_reasoning(out, members, settings);
  if (how == delivery::streamed) {
    members.name("stream");
    out += "true";
  }
  members.extras();
  members.name("input");
  out += '[';
  return out;
}

model_outcome read_reply(const json& body) {
  auto& items = member(body, "output");
  if (!items.is_array())
    return bad_reply("the reply has no output: " + one_line(dump_json(body), 160));
  auto status = string_or(body, "status", "completed");
  if (status != "completed" && status != "incomplete")
    return bad_reply("the reply's status is '" + one_line(status, 40) + "'");
  model_reply reply;
  for (auto& item : items)
    if (auto wrong = read_item(item, reply); !wrong.empty())
      return bad_reply(wrong + ": " + one_line(dump_json(item), 160));
  if (std::any_of(items.begin(), items.end(), must_go_back))
    reply.kept = dump_json(items);
  reply.finish_reason = finish_word(body, !reply.tool_calls.empty());
  reply.model = string_or(body, "model");
  reply.usage = usage_of(member(body, "usage"));
  return reply;
}

}  // namespace troupe::responses

namespace troupe {
namespace {

class responses_codec final : public codec {
public:
  explicit responses_codec(codec_options options) : options_{std::move(options)} {}

  [[nodiscard]] message_encoder encoder() const override { return responses::encode_message; }

  [[nodiscard]] encoded_request encode(const model_request& request, delivery how) const override {
    auto query = options_.azure && !options_.version.empty()
                   ? "?api-version=" + percent_encoded(options_.version)
                   : std::string{};
    return {(query.empty() ? "/responses" : "/openai/responses") + query,
            responses::encode_head(*request.settings, how), request.messages, "]}"};
  }

  [[nodiscard]] header_list headers(std::string_view key) const override {
    return openai_key(key, options_.azure);
  }

  [[nodiscard]] model_outcome decode(std::string_view body) const override {
    auto read = read_body(body);
    return read ? responses::read_reply(*read) : model_outcome{tl::unexpected(read.error())};
  }

  [[nodiscard]] std::unique_ptr<reply_assembler> assembler() const override {
    return responses::make_response_assembler();
  }

private:
  codec_options options_;
};

}  // namespace

std::shared_ptr<const codec> make_responses_codec(const codec_options& options) {
  return std::make_shared<responses_codec>(options);
}

}  // namespace troupe

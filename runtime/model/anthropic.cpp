// Anthropic's Messages API, as Anthropic and llama.cpp speak it.
// Source  Anthropic API reference, "Messages", "Versions", "Extended thinking".
#include "runtime/model/anthropic.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/codecs.hpp"
#include "runtime/model/reply_reader.hpp"
#include "runtime/model/request_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::anthropic {
namespace {

constexpr std::string_view first_version = "2023-06-01";
/// From this version on the request has no temperature.
constexpr std::string_view without_samplers = "2026-10-21";
/// Of a prompt that is too short to be kept it is ignored.
constexpr std::string_view cache_mark = "{\"type\":\"ephemeral\"}";

// -- messages ------------------------------------------------------------------------------------

enum open_turn : encoder_state { nothing, in_system, in_user, in_assistant };

/// Writes blocks, and the comma between them.
class block_writer {
public:
  block_writer(std::string& out, bool first) : out_{out}, first_{first} {}

  std::string& next() {
    if (!std::exchange(first_, false))
      out_ += ',';
    return out_;
  }

private:
  std::string& out_;
  bool first_;
};

void write_text(block_writer& blocks, std::string_view text) {
  auto& out = blocks.next();
  out += "{\"type\":\"text\",\"text\":";
  append_json_string(out, text);
  out += '}';
}

/// A URL, or the parts of "data:<type>;base64,<data>".
void write_image(block_writer& blocks, std::string_view image) {
  auto& out = blocks.next();
  auto comma = image.find(',');
  auto is_data = image.starts_with("data:") && comma != std::string_view::npos;
  if (!is_data) {
    out += "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":";
    append_json_string(out, image);
    out += "}}";
    return;
  }
  out += "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":";
  append_json_string(out, image.substr(5, image.find_first_of(";,") - 5));
  out += ",\"data\":";
  append_json_string(out, image.substr(comma + 1));
  out += "}}";
}

void write_result(block_writer& blocks, const chat_message& message) {
  auto& out = blocks.next();
  out += "{\"type\":\"tool_result\",\"tool_use_id\":";
  append_json_string(out, message.tool_call_id);
  out += ",\"content\":";
  append_json_string(out, message.content);
  out += message.failed ? ",\"is_error\":true}" : "}";
}

/// The input must be an object: a call whose arguments were cut short goes back without them.
void write_call(block_writer& blocks, const tool_call_message& call) {
  auto& out = blocks.next();
  out += "{\"type\":\"tool_use\",\"id\":";
  append_json_string(out, call.id);
  out += ",\"name\":";
  append_json_string(out, call.name);
  out += ",\"input\":";
  auto sound = arguments_of(call) && !trim(call.arguments).empty();
  out += sound ? call.arguments : "{}";
  out += '}';
}

bool is_thinking(const json& block) {
  auto type = string_or(block, "type");
  return type == "thinking" || type == "redacted_thinking";
}

/// True when the message is still the reply that `blocks` came with.
bool is_unedited(const json& blocks, const chat_message& message) {
  std::string text;
  std::vector<std::string> ids;
  for (auto& block : blocks) {
    auto type = string_or(block, "type");
    if (type == "text")
      text += string_or(block, "text");
    if (type == "tool_use")
      ids.push_back(string_or(block, "id"));
  }
  auto same_call = [](const std::string& id, const tool_call_message& c) { return id == c.id; };
  return text == message.content
         && std::equal(ids.begin(), ids.end(), message.tool_calls.begin(), message.tool_calls.end(),
                       same_call);
}

/// Writes what the reply came with; true when that is all of the message.
bool write_kept(block_writer& blocks, const chat_message& message) {
  if (message.kept.empty())
    return false;
  auto kept = parse_json(message.kept);
  if (!kept || !kept->is_array())
    return false;
  auto all = is_unedited(*kept, message);
  for (auto& block : *kept)
    if (all || is_thinking(block))
      blocks.next() += dump_json(block);
  return all;
}

/// A message without a block, or with a blank text, would be refused.
void write_blocks(block_writer& blocks, const chat_message& message) {
  if (message.from == role::tool) {
    write_result(blocks, message);
    return;
  }
  if (message.from == role::assistant && write_kept(blocks, message))
    return;
  auto blank = trim(message.content).empty();
  if (!blank)
    write_text(blocks, message.content);
  for (auto& image : message.images)
    write_image(blocks, image);
  for (auto& call : message.tool_calls)
    write_call(blocks, call);
  if (blank && message.images.empty() && message.tool_calls.empty())
    write_text(blocks, "(empty)");
}

open_turn turn_of(role from, encoder_state before) {
  if (from == role::assistant)
    return in_assistant;
  // The API has no system message within a conversation.
  return from == role::system && before <= in_system ? in_system : in_user;
}

void open(std::string& out, open_turn turn, encoder_state before) {
  if (turn == in_system) {
    out += "\"system\":[";
    return;
  }
  constexpr std::array<std::string_view, 4> ends = {"\"messages\":[", "],\"messages\":[", "]},",
                                                    "]},"};
  out += ends[before];
  out +=
    turn == in_user ? "{\"role\":\"user\",\"content\":[" : "{\"role\":\"assistant\",\"content\":[";
}

// -- head ----------------------------------------------------------------------------------------

void append_tool(std::string& out, const tool_spec& tool) {
  out += "{\"name\":";
  append_json_string(out, tool.name);
  out += ",\"description\":";
  append_json_string(out, tool.description);
  out += ",\"input_schema\":";
  append_schema(out, tool.parameters);
  out += '}';
}

/// Of an object that ends `out`.
void mark_object(std::string& out) {
  out.pop_back();
  out += ",\"cache_control\":";
  out += cache_mark;
  out += '}';
}

void append_tools(std::string& out, const std::vector<tool_spec>& tools, bool marked) {
  append_array(out, tools, append_tool);
  if (!marked)
    return;
  out.pop_back();
  mark_object(out);
  out += ']';
}

void append_choice(std::string& out, const model_settings& settings) {
  constexpr std::array<std::string_view, 4> words = {"auto", "none", "any", "tool"};
  auto how = settings.choice.how;
  out += "{\"type\":\"";
  out += words[static_cast<std::size_t>(how)];
  out += '"';
  if (how == tool_choice::mode::named) {
    out += ",\"name\":";
    append_json_string(out, settings.choice.name);
  }
  if (settings.parallel_tool_calls && how != tool_choice::mode::none)
    out += *settings.parallel_tool_calls ? ",\"disable_parallel_tool_use\":false"
                                         : ",\"disable_parallel_tool_use\":true";
  out += '}';
}

void append_tool_members(std::string& out, member_writer& members, const model_settings& settings,
                         bool marked) {
  if (settings.tools.empty())
    return;
  if (members.begin("tools"))
    append_tools(out, settings.tools, marked);
  if ((settings.choice != tool_choice{} || settings.parallel_tool_calls)
      && members.begin("tool_choice"))
    append_choice(out, settings);
}

void append_output(std::string& out, member_writer& members, const model_settings& settings) {
  auto& effort = settings.reasoning_effort;
  if ((!settings.output && effort.empty()) || !members.begin("output_config"))
    return;
  out += '{';
  if (!effort.empty()) {
    out += "\"effort\":";
    append_json_string(out, effort);
  }
  if (settings.output) {
    out += effort.empty() ? "" : ",";
    out += "\"format\":{\"type\":\"json_schema\",\"schema\":";
    append_schema(out, settings.output->schema);
    out += '}';
  }
  out += '}';
}

/// Blank ones are refused; troupe cuts at them itself.
std::vector<std::string> accepted_stops(const std::vector<std::string>& stops) {
  std::vector<std::string> out;
  std::copy_if(stops.begin(), stops.end(), std::back_inserter(out),
               [](auto& s) { return !trim(s).empty(); });
  return out;
}

// -- reply ---------------------------------------------------------------------------------------

/// In the words of chat completions; others as they are.
std::string finish_word(std::string reason) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> words{{
    {"end_turn", "stop"},
    {"stop_sequence", "stop"},
    {"max_tokens", "length"},
    {"model_context_window_exceeded", "length"},
    {"tool_use", "tool_calls"},
    {"refusal", "content_filter"},
  }};
  auto* it = std::find_if(words.begin(), words.end(), [&](auto& w) { return w.first == reason; });
  return it == words.end() ? std::move(reason) : std::string{it->second};
}

/// The server counts what went through its cache apart from the rest of the input.
token_usage usage_of(const json& usage) {
  auto cached = count_of(member(usage, "cache_read_input_tokens"));
  auto written = count_of(member(usage, "cache_creation_input_tokens"));
  return {.input = count_of(member(usage, "input_tokens")) + cached + written,
          .output = count_of(member(usage, "output_tokens")),
          .cached = cached,
          .cache_written = written};
}

/// Returns what is wrong with the block, or "".
std::string read_block(const json& block, model_reply& reply) {
  auto type = string_or(block, "type");
  if (type == "text")
    reply.text += string_or(block, "text");
  else if (type == "thinking")
    reply.reasoning += string_or(block, "thinking");
  if (type != "tool_use")
    return {};
  auto name = string_or(block, "name");
  if (name.empty())
    return "a tool_use block names no tool";
  reply.tool_calls.push_back({call_id_or_position(string_or(block, "id"), reply.tool_calls.size()),
                              std::move(name),
                              arguments_text(member(block, "input")),
                              {}});
  return {};
}

bool must_go_back(const json& block) {
  auto type = string_or(block, "type");
  return type != "text" && type != "tool_use";
}

}  // namespace

encoder_state encode_message(std::string& out, const chat_message& message, encoder_state before) {
  auto turn = turn_of(message.from, before);
  if (turn != before)
    open(out, turn, before);
  block_writer blocks{out, turn != before};
  write_blocks(blocks, message);
  return turn;
}

encoder_state encode_marked_message(std::string& out, const chat_message& message,
                                    encoder_state before) {
  auto turn = encode_message(out, message, before);
  if (before == nothing && turn == in_system)
    mark_object(out);
  return turn;
}

std::string_view closing(encoder_state state) {
  constexpr std::array<std::string_view, 4> ends = {"\"messages\":[]}", "],\"messages\":[]}",
                                                    "]}]}", "]}]}"};
  return ends[state];
}

std::string encode_head(const model_settings& settings, const codec_options& options,
                        delivery how) {
  constexpr std::uint32_t default_max_tokens = 8192;
  std::string out;
  member_writer members{out, settings.extra_body, {"messages", "system", "stream"}};
  if (members.begin("model"))
    append_json_string(out, settings.model);
  if (members.begin("max_tokens"))
    out += std::to_string(settings.max_output_tokens.value_or(default_max_tokens));
  if (settings.temperature && options.version < without_samplers && members.begin("temperature"))
    out += dump_json(*settings.temperature);
  if (auto stops = accepted_stops(settings.stop); !stops.empty() && members.begin("stop_sequences"))
    append_strings(out, stops);
  append_tool_members(out, members, settings, options.prompt_cache);
  append_output(out, members, settings);
  if (options.prompt_cache && members.begin("cache_control"))
    out += cache_mark;
  if (how == delivery::streamed) {
    members.name("stream");
    out += "true";
  }
  members.extras();
  out += out.empty() ? '{' : ',';
  return out;
}

model_outcome read_reply(const json& body) {
  auto& blocks = member(body, "content");
  if (!blocks.is_array())
    return bad_reply("the reply has no content: " + one_line(dump_json(body), 160));
  model_reply reply;
  for (auto& block : blocks)
    if (auto wrong = read_block(block, reply); !wrong.empty())
      return bad_reply(wrong + ": " + one_line(dump_json(block), 160));
  if (std::any_of(blocks.begin(), blocks.end(), must_go_back))
    reply.kept = dump_json(blocks);
  reply.finish_reason = finish_word(string_or(body, "stop_reason"));
  reply.model = string_or(body, "model");
  reply.usage = usage_of(member(body, "usage"));
  return reply;
}

}  // namespace troupe::anthropic

namespace troupe {
namespace {

class anthropic_codec final : public codec {
public:
  explicit anthropic_codec(codec_options options) : options_{std::move(options)} {
    if (options_.version.empty())
      options_.version = anthropic::first_version;
  }

  [[nodiscard]] message_encoder encoder() const override {
    return options_.prompt_cache ? anthropic::encode_marked_message : anthropic::encode_message;
  }

  [[nodiscard]] encoded_request encode(const model_request& request, delivery how) const override {
    return {"/messages", anthropic::encode_head(*request.settings, options_, how), request.messages,
            std::string{anthropic::closing(request.messages.state)}};
  }

  [[nodiscard]] header_list headers(std::string_view key) const override {
    header_list out{{"anthropic-version", options_.version}};
    if (auto bare = trim(key); !bare.empty())
      out.emplace_back("x-api-key", bare);
    return out;
  }

  [[nodiscard]] model_outcome decode(std::string_view body) const override {
    auto read = read_body(body);
    return read ? anthropic::read_reply(*read) : model_outcome{tl::unexpected(read.error())};
  }

  [[nodiscard]] std::unique_ptr<reply_assembler> assembler() const override {
    return anthropic::make_message_assembler();
  }

private:
  codec_options options_;
};

}  // namespace

std::shared_ptr<const codec> make_anthropic_codec(const codec_options& options) {
  return std::make_shared<anthropic_codec>(options);
}

}  // namespace troupe

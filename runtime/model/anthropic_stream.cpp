// Anthropic's Messages in pieces.
// Source  Anthropic API reference, "Streaming messages".
#include "runtime/model/anthropic.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/json_merge.hpp"
#include "runtime/model/reply_reader.hpp"

#include <map>
#include <utility>

namespace troupe::anthropic {
namespace {

constexpr std::size_t max_blocks = 4096;  ///< what a hostile server may make us keep

/// One block as its pieces come. A call's input is JSON text that is read at the end: llama.cpp
/// ends all blocks together.
struct open_block {
  json block = json::object();
  std::string input;
  std::uint32_t call = 0;  ///< of a tool_use: which call of the reply

  [[nodiscard]] bool is_call() const { return string_or(block, "type") == "tool_use"; }

  /// As it stands in a reply in one piece. Input that was cut short stays text.
  [[nodiscard]] json whole() && {
    if (is_call() && !input.empty()) {
      auto parsed = parse_json(input);
      block["input"] = parsed && parsed->is_object() ? *std::move(parsed) : json(std::move(input));
    }
    return std::move(block);
  }
};

using seen_list = std::vector<model_delta>;
using taken = tl::expected<void, model_failure>;

class message_assembler final : public reply_assembler {
public:
  taken take(const sse_event& event, seen_list& seen) override {
    auto data = read_event_data(event.data);
    if (!data)
      return tl::unexpected(std::move(data.error()));
    auto type = string_or(*data, "type", event.name);
    if (type == "message_start")
      merge_message(member(*data, "message"));
    else if (type == "content_block_start")
      return start_block(*data, seen);
    else if (type == "content_block_delta")
      return grow_block(*data, seen);
    else if (type == "message_delta")
      merge_end(*data);
    else if (type == "message_stop")
      done_ = true;
    return {};
  }

  [[nodiscard]] bool complete() const override { return done_; }

  [[nodiscard]] bool ended() const override {
    return done_ || !string_or(message_, "stop_reason").empty();
  }

  model_outcome finish() override {
    auto content = json::array();
    for (auto& [index, block] : blocks_)
      content.push_back(std::move(block).whole());
    message_["content"] = std::move(content);
    return read_reply(message_);
  }

private:
  void merge_message(const json& message) {
    if (message.is_object())
      message_ = message;
    if (!member(message_, "usage").is_object())
      message_["usage"] = json::object();
  }

  /// The usage in it is the whole reply's so far, and may leave out what has not changed.
  void merge_end(const json& data) {
    replace_members(message_, member(data, "delta"));
    replace_members(message_["usage"], member(data, "usage"));
  }

  static void replace_members(json& whole, const json& newer) {
    if (!newer.is_object())
      return;
    for (auto& [name, value] : newer.items())
      if (!value.is_null())
        whole[name] = value;
  }

  /// The block of the event's index; null when there are too many.
  open_block* block_of(const json& data) {
    auto& index = member(data, "index");
    auto key = index.is_number_integer() ? index.get<std::int64_t>() : std::int64_t{0};
    if (!blocks_.contains(key) && blocks_.size() == max_blocks)
      return nullptr;
    return &blocks_[key];
  }

  static taken too_many() {
    return bad_reply("the reply has more than " + std::to_string(max_blocks) + " blocks");
  }

  taken start_block(const json& data, seen_list& seen) {
    auto* open = block_of(data);
    if (open == nullptr)
      return too_many();
    if (auto& block = member(data, "content_block"); block.is_object())
      open->block = block;
    if (open->is_call()) {
      open->call = calls_++;
      seen.push_back(
        {model_delta::kind::tool_call, {}, open->call, string_or(open->block, "name")});
    }
    show(model_delta::kind::text, string_or(open->block, "text"), seen);
    show(model_delta::kind::reasoning, string_or(open->block, "thinking"), seen);
    return {};
  }

  taken grow_block(const json& data, seen_list& seen) {
    auto* open = block_of(data);
    if (open == nullptr)
      return too_many();
    auto& delta = member(data, "delta");
    auto type = string_or(delta, "type");
    if (type == "input_json_delta") {
      auto piece = string_or(delta, "partial_json");
      open->input += piece;
      if (!piece.empty())
        seen.push_back({model_delta::kind::tool_call, std::move(piece), open->call, {}});
    } else if (type == "text_delta") {
      append(open->block, "text", "text", delta);
      show(model_delta::kind::text, string_or(delta, "text"), seen);
    } else if (type == "thinking_delta") {
      append(open->block, "thinking", "thinking", delta);
      show(model_delta::kind::reasoning, string_or(delta, "thinking"), seen);
    } else if (type == "signature_delta") {
      append(open->block, "thinking", "signature", delta);
    } else if (type == "citations_delta") {
      merge_piece(open->block["citations"], json::array({member(delta, "citation")}));
    }
    return {};
  }

  /// Adds the delta's member to the block's; a block whose start is missing gets its type.
  static void append(json& block, std::string_view type, const char* name, const json& delta) {
    if (!block.contains("type"))
      block["type"] = type;
    merge_piece(block[name], member(delta, name));
  }

  static void show(model_delta::kind what, std::string text, seen_list& seen) {
    if (!text.empty())
      seen.push_back({what, std::move(text), 0, {}});
  }

  json message_{{"usage", json::object()}};
  std::map<std::int64_t, open_block> blocks_;  // by index: the order of the reply
  std::uint32_t calls_ = 0;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<reply_assembler> make_message_assembler() {
  return std::make_unique<message_assembler>();
}

}  // namespace troupe::anthropic

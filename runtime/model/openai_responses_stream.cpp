// The Responses API in pieces.
// Source  OpenAI API reference, "Streaming events" of the Responses API.
#include "runtime/model/chat_text.hpp"
#include "runtime/model/openai_responses.hpp"
#include "runtime/model/reply_reader.hpp"
#include "runtime/model/server_error.hpp"

#include <map>
#include <utility>

namespace troupe::responses {
namespace {

constexpr std::size_t max_items = 4096;  ///< what a hostile server may make us keep

/// One output item as its pieces come.
struct open_item {
  json item = json::object();
  std::string text;       ///< of a message
  std::string arguments;  ///< of a function call
  std::uint32_t call = 0;
  bool done = false;  ///< `item` is whole

  [[nodiscard]] json whole() && {
    if (done)
      return std::move(item);
    if (!text.empty()) {
      item["type"] = "message";
      item["content"] = json::array({{{"type", "output_text"}, {"text", std::move(text)}}});
    }
    if (!arguments.empty())
      item["arguments"] = std::move(arguments);
    return std::move(item);
  }
};

using seen_list = std::vector<model_delta>;
using taken = tl::expected<void, model_failure>;

class response_assembler final : public reply_assembler {
public:
  taken take(const sse_event& event, seen_list& seen) override {
    auto data = read_event_data(event.data);
    if (!data)
      return tl::unexpected(std::move(data.error()));
    auto type = string_or(*data, "type", event.name);
    if (type == "error")
      return tl::unexpected(failure_inside(*data, "the server broke off with an error"));
    if (type == "response.completed" || type == "response.incomplete" || type == "response.failed")
      return end(*data);
    if (!member(*data, "output_index").is_number_integer())
      return {};
    auto* open = item_of(*data);
    if (open == nullptr)
      return bad_reply("the reply has more than " + std::to_string(max_items) + " items");
    grow(*open, type, *data, seen);
    return {};
  }

  [[nodiscard]] bool complete() const override { return done_; }

  [[nodiscard]] bool ended() const override { return done_; }

  model_outcome finish() override {
    auto& output = response_["output"];
    if (!output.is_array() || output.empty()) {
      output = json::array();
      for (auto& [index, item] : items_)
        output.push_back(std::move(item).whole());
    }
    return read_reply(response_);
  }

private:
  taken end(const json& data) {
    auto& response = member(data, "response");
    if (!response.is_object())
      return bad_reply("the last event has no response");
    if (is_error(response))
      return tl::unexpected(failure_inside(response, "the server broke off with an error"));
    response_ = response;
    done_ = true;
    return {};
  }

  open_item* item_of(const json& data) {
    auto key = member(data, "output_index").get<std::int64_t>();
    if (!items_.contains(key) && items_.size() == max_items)
      return nullptr;
    return &items_[key];
  }

  void grow(open_item& open, std::string_view type, const json& data, seen_list& seen) {
    auto delta = string_or(data, "delta");
    if (type == "response.output_item.added")
      start(open, member(data, "item"), seen);
    else if (type == "response.output_item.done")
      close(open, member(data, "item"));
    else if (type == "response.output_text.delta" || type == "response.refusal.delta")
      add_text(open, delta, seen);
    else if (type == "response.function_call_arguments.delta")
      add_arguments(open, delta, seen);
    else if (type == "response.reasoning_summary_text.delta"
             || type == "response.reasoning_text.delta")
      show(model_delta::kind::reasoning, delta, seen);
  }

  void start(open_item& open, const json& item, seen_list& seen) {
    if (!item.is_object())
      return;
    open.item = item;
    if (string_or(item, "type") != "function_call")
      return;
    open.call = calls_++;
    seen.push_back({model_delta::kind::tool_call, {}, open.call, string_or(item, "name")});
  }

  static void close(open_item& open, const json& item) {
    if (!item.is_object())
      return;
    open.item = item;
    open.done = true;
  }

  static void add_arguments(open_item& open, const std::string& delta, seen_list& seen) {
    open.arguments += delta;
    if (!delta.empty())
      seen.push_back({model_delta::kind::tool_call, delta, open.call, {}});
  }

  static void add_text(open_item& open, const std::string& delta, seen_list& seen) {
    open.text += delta;
    show(model_delta::kind::text, delta, seen);
  }

  static void show(model_delta::kind what, const std::string& delta, seen_list& seen) {
    if (!delta.empty())
      seen.push_back({what, delta, 0, {}});
  }

  json response_ = json::object();
  std::map<std::int64_t, open_item> items_;  // by output_index: the order of the reply
  std::uint32_t calls_ = 0;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<reply_assembler> make_response_assembler() {
  return std::make_unique<response_assembler>();
}

}  // namespace troupe::responses

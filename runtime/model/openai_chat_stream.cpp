// Chat completions in pieces: "chat.completion.chunk" objects, then "[DONE]".
// Source  OpenAI API reference, "Chat completion chunk"; deviations named where they are met.
#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/json_merge.hpp"
#include "runtime/model/openai_chat.hpp"
#include "runtime/model/reply_reader.hpp"
#include "runtime/model/server_error.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::openai {
namespace {

/// What a hostile server may make us keep.
constexpr std::size_t max_calls = 1024;

struct open_call {
  std::optional<std::int64_t> index;
  std::string id;
  std::string name;
  std::string arguments;
  json others = json::object();  ///< members of the provider's own
};

/// The calls of a reply as their pieces come. A piece belongs to the call of its index; without an
/// index to that of its id; without both to the last call, unless it names a tool. Ollama gives
/// several calls index 0, Gemini gives none: another id on the same index is another call.
class call_list {
public:
  /// Takes one piece. Returns the call's position, or nothing when there are too many.
  std::optional<std::size_t> take(const json& piece) {
    auto at = find(piece);
    if (at == calls_.size()) {
      if (at == max_calls)
        return std::nullopt;
      calls_.emplace_back();
    }
    grow(calls_[at], piece);
    return at;
  }

  [[nodiscard]] const open_call& operator[](std::size_t i) const { return calls_[i]; }
  [[nodiscard]] bool empty() const { return calls_.empty(); }

  /// As they stand in a reply in one piece.
  [[nodiscard]] json whole() const {
    auto out = json::array();
    for (auto& call : calls_) {
      auto one = call.others;
      one["id"] = call.id;
      one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
      out.push_back(std::move(one));
    }
    return out;
  }

private:
  [[nodiscard]] std::size_t find(const json& piece) const {
    auto& index = member(piece, "index");
    auto id = string_or(piece, "id");
    if (!index.is_number_integer() && id.empty()) {
      auto starts = !string_or(member(piece, "function"), "name").empty();
      return starts || calls_.empty() ? calls_.size() : calls_.size() - 1;
    }
    for (auto i = calls_.size(); i-- > 0;) {
      auto& call = calls_[i];
      if (index.is_number_integer() && call.index) {
        if (*call.index == index.get<std::int64_t>())
          return id.empty() || call.id.empty() || call.id == id ? i : calls_.size();
      } else if (!id.empty() && call.id == id) {
        return i;
      }
    }
    return calls_.size();
  }

  static void grow(open_call& call, const json& piece) {
    if (auto& index = member(piece, "index"); index.is_number_integer())
      call.index = index.get<std::int64_t>();
    if (auto id = string_or(piece, "id"); !id.empty())
      call.id = std::move(id);
    auto& function = member(piece, "function");
    if (auto name = string_or(function, "name"); name != call.name)
      call.name += name;  // whole in the first piece, repeated, or itself in pieces
    auto& arguments = member(function, "arguments");
    call.arguments +=
      arguments.is_object() ? dump_json(arguments) : string_or(function, "arguments");
    for (auto& [name, value] : piece.items())
      if (name != "id" && name != "index" && name != "type" && name != "function")
        merge_piece(call.others[name], value);
  }

  std::vector<open_call> calls_;
};

class chat_assembler final : public reply_assembler {
public:
  tl::expected<void, model_failure> take(const sse_event& event,
                                         std::vector<model_delta>& seen) override {
    if (trim(event.data) == "[DONE]") {
      done_ = true;
      return {};
    }
    auto chunk = read_event_data(event.data);
    if (!chunk)
      return tl::unexpected(std::move(chunk.error()));
    if (event.name == "error")
      return tl::unexpected(failure_inside(*chunk, "the server broke off with an error"));
    if (auto model = string_or(*chunk, "model"); !model.empty())
      model_ = std::move(model);
    if (auto& usage = member(*chunk, "usage"); usage.is_object())
      usage_ = usage;
    auto& choices = member(*chunk, "choices");
    for (auto i = std::size_t{0}; choices.is_array() && i < choices.size(); ++i)
      if (auto ok = take_choice(choices[i], seen); !ok)
        return ok;
    return {};
  }

  [[nodiscard]] bool complete() const override { return done_; }

  /// By its finish reason, or by "[DONE]" alone where the server never gives one.
  [[nodiscard]] bool ended() const override { return !finish_.empty() || (done_ && anything_); }

  model_outcome finish() override {
    if (!calls_.empty())
      message_["tool_calls"] = calls_.whole();
    json choice{{"message", std::move(message_)}, {"finish_reason", finish_}};
    return read_reply({{"model", model_},
                       {"usage", std::move(usage_)},
                       {"choices", json::array({std::move(choice)})}});
  }

private:
  tl::expected<void, model_failure> take_choice(const json& choice,
                                                std::vector<model_delta>& seen) {
    if (is_error(choice))
      return tl::unexpected(failure_inside(choice, "the server broke off with an error"));
    auto& index = member(choice, "index");
    if (index.is_number_integer() && index != 0)
      return {};
    if (auto reason = string_or(choice, "finish_reason"); !reason.empty())
      finish_ = std::move(reason);
    // Some servers send all of a short reply as a message.
    auto& delta = member(choice, "delta");
    auto& piece = delta.is_object() || anything_ ? delta : member(choice, "message");
    return piece.is_object() ? take_piece(piece, seen) : tl::expected<void, model_failure>{};
  }

  tl::expected<void, model_failure> take_piece(const json& piece, std::vector<model_delta>& seen) {
    anything_ = true;
    show(model_delta::kind::reasoning,
         string_or(piece, "reasoning_content", string_or(piece, "reasoning")), seen);
    auto content = text_of(member(piece, "content"));
    show(model_delta::kind::text, content.empty() ? string_or(piece, "refusal") : content, seen);
    for (auto& [name, value] : piece.items()) {
      if (name == "content")
        merge_piece(message_[name], content);
      else if (name != "tool_calls" && name != "role")
        merge_piece(message_[name], value);
    }
    auto& calls = member(piece, "tool_calls");
    for (auto i = std::size_t{0}; calls.is_array() && i < calls.size(); ++i)
      if (auto ok = take_call(calls[i], seen); !ok)
        return ok;
    return {};
  }

  tl::expected<void, model_failure> take_call(const json& piece, std::vector<model_delta>& seen) {
    if (!piece.is_object())
      return bad_reply("a piece of a tool call is not an object: "
                       + one_line(dump_json(piece), 160));
    auto at = calls_.take(piece);
    if (!at)
      return bad_reply("the reply has more than " + std::to_string(max_calls) + " tool calls");
    shown_.resize(std::max(shown_.size(), *at + 1));
    auto& call = calls_[*at];
    model_delta delta{model_delta::kind::tool_call, call.arguments.substr(shown_[*at].arguments),
                      static_cast<std::uint32_t>(*at),
                      std::exchange(shown_[*at].named, true) ? std::string{} : call.name};
    shown_[*at].arguments = call.arguments.size();
    seen.push_back(std::move(delta));
    return {};
  }

  static void show(model_delta::kind what, std::string text, std::vector<model_delta>& seen) {
    if (!text.empty())
      seen.push_back({what, std::move(text), 0, {}});
  }

  struct shown_call {
    std::size_t arguments = 0;  ///< bytes
    bool named = false;
  };

  json message_ = json::object();
  call_list calls_;
  std::vector<shown_call> shown_;
  std::string finish_;
  std::string model_;
  json usage_;
  bool anything_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<reply_assembler> make_chat_assembler() {
  return std::make_unique<chat_assembler>();
}

}  // namespace troupe::openai

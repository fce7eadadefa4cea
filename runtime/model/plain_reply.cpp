#include "runtime/model/plain_reply.hpp"

#include "runtime/core/json_tokens.hpp"
#include "runtime/model/reply_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::openai {
namespace {

/// The object or list that is being read.
enum class place : std::uint8_t {
  none,
  anything,  ///< nothing in it matters
  body,
  choices,
  choice,
  message,
  calls,
  call,
  function,
  usage,
  prompt_details,
  completion_details
};

constexpr bool is_list(place p) {
  return p == place::choices || p == place::calls;
}

/// The texts of a reply; of its calls, those of the one that is being read.
struct reply_texts {
  std::optional<std::string> model, finish_reason;
  std::optional<std::string> content, refusal, reasoning_content, reasoning;
  std::optional<std::string> call_id, call_name, arguments;
};

/// A member, and where its value goes. All may be null; one that has no place must be.
struct known_member {
  place in;
  std::string_view name;
  place inside = place::none;  ///< of an object or a list
  std::optional<std::string> reply_texts::*text = nullptr;
  std::uint64_t token_usage::*count = nullptr;
};

using texts = reply_texts;

constexpr known_member ignored{place::none, {}, place::anything};
constexpr known_member unknown{place::none, {}};  // it would have to go back
constexpr std::array<known_member, 29> known_members{{
  {place::body, "error"},
  {place::body, "model", place::none, &texts::model},
  {place::body, "choices", place::choices},
  {place::body, "usage", place::usage},
  {place::choice, "error"},
  {place::choice, "message", place::message},
  {place::choice, "finish_reason", place::none, &texts::finish_reason},
  {place::message, "role", place::anything},
  {place::message, "content", place::none, &texts::content},
  {place::message, "refusal", place::none, &texts::refusal},
  {place::message, "reasoning_content", place::none, &texts::reasoning_content},
  {place::message, "reasoning", place::none, &texts::reasoning},
  {place::message, "tool_calls", place::calls},
  {place::message, "function_call", place::anything},
  {place::message, "annotations", place::anything},
  {place::message, "audio", place::anything},
  {place::call, "id", place::none, &texts::call_id},
  {place::call, "type", place::anything},
  {place::call, "index", place::anything},
  {place::call, "function", place::function},
  {place::function, "name", place::none, &texts::call_name},
  {place::function, "arguments", place::none, &texts::arguments},
  {place::usage, "prompt_tokens", place::none, nullptr, &token_usage::input},
  {place::usage, "completion_tokens", place::none, nullptr, &token_usage::output},
  {place::usage, "prompt_tokens_details", place::prompt_details},
  {place::usage, "completion_tokens_details", place::completion_details},
  {place::prompt_details, "cached_tokens", place::none, nullptr, &token_usage::cached},
  {place::prompt_details, "cache_write_tokens", place::none, nullptr, &token_usage::cache_written},
  {place::completion_details, "reasoning_tokens", place::none, nullptr, &token_usage::reasoning},
}};

constexpr std::uint32_t bits_of(place in) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < known_members.size(); ++i)
    out |= known_members[i].in == in ? 1u << i : 0u;
  return out;
}

constexpr std::uint32_t bits_of_call = bits_of(place::call) | bits_of(place::function);

/// Fills a reply from the tokens of its body.
class plain_reader {
public:
  using token = json_tokens::token;

  /// Takes the next token. False ends the reading: it is not a plain reply.
  bool take(token t, const json_tokens& from) {
    switch (t) {
    case token::key:
      return key(from.text());
    case token::string:
      return string(from.text());
    case token::number:
      return number(from.number());
    case token::boolean:
      return matters_not();
    case token::null:
      return member_ != nullptr || in() == place::anything;
    case token::object:
    case token::array:
      return enter(t == token::array);
    case token::object_end:
    case token::array_end:
      return leave();
    default:
      return false;
    }
  }

  /// The reply, once all has been read.
  std::optional<model_reply> reply() {
    auto reasons = texts_.reasoning_content || texts_.reasoning;
    if (!has_message_ || (texts_.reasoning_content && texts_.reasoning)
        || (reasons && !reply_.tool_calls.empty()))
      return std::nullopt;
    auto text = std::move(texts_.content).value_or("");
    reply_.text = text.empty() ? std::move(texts_.refusal).value_or("") : std::move(text);
    reply_.reasoning =
      std::move(texts_.reasoning_content ? texts_.reasoning_content : texts_.reasoning)
        .value_or("");
    reply_.finish_reason = std::move(texts_.finish_reason).value_or("");
    reply_.model = std::move(texts_.model).value_or("");
    return std::move(reply_);
  }

private:
  [[nodiscard]] place in() const { return depth_ == 0 ? place::none : places_[depth_ - 1]; }

  [[nodiscard]] bool matters_not() const {
    return in() == place::anything || (member_ != nullptr && member_->inside == place::anything);
  }

  // Of several members of one name the last one counts: rare enough to be left to others.
  bool key(std::string_view name) {
    if (in() == place::anything)
      return true;
    auto* found = std::find_if(known_members.begin(), known_members.end(),
                               [&](auto& m) { return m.in == in() && m.name == name; });
    if (found == known_members.end()) {
      member_ = in() == place::message || in() == place::call ? &unknown : &ignored;
      return true;
    }
    member_ = found;
    auto bit = 1u << (found - known_members.begin());
    return (std::exchange(seen_, seen_ | bit) & bit) == 0;
  }

  bool string(std::string_view text) {
    if (matters_not())
      return true;
    if (member_ == nullptr || member_->text == nullptr)
      return false;
    texts_.*member_->text = text;
    return true;
  }

  bool number(double n) {
    if (matters_not())
      return true;
    if (member_ == nullptr || member_->count == nullptr)
      return false;
    reply_.usage.*member_->count = count_of(n);
    return true;
  }

  /// What an object or a list that begins here is.
  place beginning() {
    switch (in()) {
    case place::none:
      return place::body;
    case place::anything:
      return place::anything;
    case place::choices:
      return std::exchange(has_choice_, true) ? place::anything : place::choice;
    case place::calls:
      return place::call;
    default:
      return member_->inside;
    }
  }

  bool enter(bool list) {
    auto inside = beginning();
    if (inside == place::none || (inside != place::anything && is_list(inside) != list))
      return false;
    has_message_ = has_message_ || inside == place::message;
    places_[depth_++] = inside;
    member_ = nullptr;
    return true;
  }

  bool leave() {
    auto ok = in() != place::call || end_call();
    --depth_;
    member_ = nullptr;
    return ok;
  }

  bool end_call() {
    auto& calls = reply_.tool_calls;
    auto arguments = std::move(texts_.arguments).value_or("");
    calls.push_back({call_id_or_position(std::move(texts_.call_id).value_or(""), calls.size()),
                     std::move(texts_.call_name).value_or(""),
                     arguments.empty() ? "{}" : std::move(arguments),
                     {}});
    texts_.call_id = texts_.call_name = texts_.arguments = std::nullopt;
    seen_ &= ~bits_of_call;
    return !calls.back().name.empty();
  }

  std::array<place, json_tokens::max_depth> places_{};
  std::size_t depth_ = 0;
  const known_member* member_ = nullptr;  ///< whose value comes next
  std::uint32_t seen_ = 0;                ///< by the order of known_members
  bool has_choice_ = false;
  bool has_message_ = false;
  reply_texts texts_;
  model_reply reply_;
};

}  // namespace

std::optional<model_reply> read_plain_reply(std::string_view body) {
  if (body.size() > reply_limits.max_bytes)
    return std::nullopt;
  json_tokens tokens{body};
  plain_reader reader;
  auto t = tokens.next();
  while (reader.take(t, tokens))
    t = tokens.next();
  return t == json_tokens::token::end ? reader.reply() : std::nullopt;
}

}  // namespace troupe::openai

#pragma once
// The server's side of the three wire formats: a request's JSON in, what it asks for out; a reply
// in, its body or its events out. Written apart from the codecs, which are the client's side: each
// judges the other.

#include "runtime/core/json.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/model/codec.hpp"
#include "runtime/model/mock_error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a request asks for, as far as the mock cares.
struct mock_ask {
  std::string model{};
  std::string task{};      ///< as mock_question has it
  std::string last{};      ///< as mock_question has it
  std::uint32_t turn = 0;  ///< replies of the model so far
  bool stream = false;
  bool include_usage = false;  ///< chat: a last event with the usage
  std::optional<std::uint64_t> max_tokens{};
  std::vector<std::string> stop{};
  std::string previous{};  ///< responses: the reply that this goes on from, by its id

  bool operator==(const mock_ask&) const = default;
};

/// A reply that is to be written.
struct mock_message {
  model_reply reply{};          ///< finish_reason in the words of chat completions
  std::string id{};             ///< unique; without the provider's prefix
  std::int64_t created = 0;     ///< seconds since the Unix epoch
  std::string stop_sequence{};  ///< that ended the text; empty: none did
  bool include_usage = false;
  std::size_t chunk_bytes = 20;  ///< of text and arguments in an event; at least 4
};

/// One wire format.
struct mock_wire {
  wire_format format;
  std::string_view call_prefix;        ///< of a tool call's id
  std::string_view request_id_header;  ///< the header that names a request
  /// Errors  a status below 500 and what the provider says of such a request.
  tl::expected<mock_ask, mock_error> (*read)(const json& body);
  std::string (*whole)(const mock_message& m);
  std::vector<std::string> (*events)(const mock_message& m);  ///< the last one ends the stream
};

[[nodiscard]] const mock_wire& mock_chat() noexcept;
[[nodiscard]] const mock_wire& mock_responses() noexcept;
[[nodiscard]] const mock_wire& mock_messages() noexcept;

// --- what the three share ------------------------------------------------------------------------

/// Who wrote an entry of a conversation.
using mock_role_fn = role (*)(const json& entry);

/// Fills task, last and turn from the conversation. `grouped`: entries of the model that follow
/// each other are one reply.
void read_conversation(const json& entries, mock_role_fn who, bool grouped, mock_ask& out);

/// The text in a message's content, a tool's result, or a list of parts; "" where there is none.
[[nodiscard]] std::string text_in(const json& value);

/// A whole number that is not negative.
[[nodiscard]] std::optional<std::uint64_t> count_in(const json& body, std::string_view name);

/// A text, or a list of texts.
[[nodiscard]] std::vector<std::string> texts_in(const json& body, std::string_view name);

[[nodiscard]] bool flag_in(const json& body, std::string_view name);

/// `text` in parts of at most `bytes`, between UTF-8 sequences.
[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view text, std::size_t bytes);

/// The text as a JSON string, with its quotes.
[[nodiscard]] std::string json_text(std::string_view text);

/// "event: <data.type>\ndata: <data>\n\n".
[[nodiscard]] std::string named_event(const json& data);

}  // namespace troupe

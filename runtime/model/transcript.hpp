#pragma once
// A conversation, serialised once: each message is encoded when it is appended, never again.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class role : std::uint8_t { system, user, assistant, tool };

[[nodiscard]] std::string_view to_string(role r) noexcept;

/// A tool call as the model wrote it.
struct tool_call_message {
  std::string id{};
  std::string name{};
  std::string arguments{};  ///< JSON text, as received

  bool operator==(const tool_call_message&) const = default;
};

/// One message before it is encoded.
struct chat_message {
  role from = role::user;
  std::string content{};
  std::vector<tool_call_message> tool_calls{};  ///< assistant only
  std::string tool_call_id{};                   ///< tool only: the call this answers

  bool operator==(const chat_message&) const = default;
};

/// Appends one encoded message to `out`. A codec's function; no state.
using message_encoder = void (*)(std::string& out, const chat_message& message);

struct transcript_chunk;

/// The encoded messages, comma-separated, without the enclosing brackets. Cheap to copy; stays
/// valid and unchanged while the transcript goes on, on any thread.
struct transcript_view {
  std::shared_ptr<const transcript_chunk> last;
  std::size_t size = 0;  ///< bytes

  /// The bytes in order, as they lie; valid as long as the view or a copy of it lives.
  [[nodiscard]] std::vector<std::string_view> pieces() const;

  /// All of it in one piece: a copy.
  [[nodiscard]] std::string text() const;
};

/// An append-only conversation in its wire form. Value; copies share the bytes until they part, and
/// after that what they had in common: runs of one agent share its system prompt.
/// The bytes lie in a chain of chunks that never move: nothing is copied as it grows.
/// Units   bytes of UTF-8; at most 4 GiB.
class transcript {
public:
  explicit transcript(message_encoder encode);

  void append(const chat_message& message);

  /// Appends messages that are encoded already, as one: comma-separated, not empty.
  void append_encoded(std::string_view messages);

  [[nodiscard]] transcript_view view() const { return {last_, bytes()}; }

  /// The wire form of message `i`, which must be below size(). A copy.
  [[nodiscard]] std::string message(std::size_t i) const;

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

private:
  void write(std::string_view piece);

  message_encoder encode_;
  std::shared_ptr<transcript_chunk> last_;
  std::vector<std::uint32_t> ends_;  ///< offset past each message
};

}  // namespace troupe

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
  std::string kept{};  ///< JSON object of the provider's own, sent back with the call; or empty

  bool operator==(const tool_call_message&) const = default;
};

/// One message before it is encoded.
struct chat_message {
  role from = role::user;
  std::string content{};
  std::vector<tool_call_message> tool_calls{};  ///< assistant only
  std::string tool_call_id{};                   ///< tool only: the call this answers
  std::vector<std::string> images{};  ///< user only: https: URLs, or data:image/...;base64,...
  std::string kept{};                 ///< assistant only: the reply's `kept`
  bool failed = false;                ///< tool only: the content is an error

  bool operator==(const chat_message&) const = default;
};

/// What an encoder must know of the messages before: 0 at the start, then its codec's own number.
using encoder_state = std::uint8_t;

/// Appends one encoded message to `out`, with what parts it from the one before. Returns the state
/// for the next. A codec's function, pure.
using message_encoder = encoder_state (*)(std::string& out, const chat_message& message,
                                          encoder_state before);

struct transcript_chunk;

/// The encoded messages, without what the codec puts around them. Cheap to copy; stays valid and
/// unchanged while the transcript goes on, on any thread.
struct transcript_view {
  std::shared_ptr<const transcript_chunk> last;
  std::size_t size = 0;     ///< bytes
  encoder_state state = 0;  ///< the encoder's, after the last message

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

  /// A copy of this conversation, which is not empty, with another first message of the same role.
  /// Only that message is encoded.
  [[nodiscard]] transcript with_first(const chat_message& message) const;

  [[nodiscard]] transcript_view view() const { return {last_, bytes(), state()}; }

  /// The wire form of message `i`, which must be below size(), without a comma before it. A copy.
  [[nodiscard]] std::string message(std::size_t i) const;

  /// Bytes of message `i`, which must be below size(), with what parts it from the one before.
  [[nodiscard]] std::size_t bytes_of(std::size_t i) const noexcept {
    return marks_[i].end - start_of(i);
  }

  /// Whose message it is.
  [[nodiscard]] role from(std::size_t i) const noexcept { return marks_[i].from; }

  [[nodiscard]] std::size_t size() const noexcept { return marks_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return marks_.empty() ? 0 : marks_.back().end;
  }

private:
  friend class transcript_rewriter;

  struct mark {
    std::uint32_t end;    ///< offset past the message
    encoder_state state;  ///< the encoder's, after it
    role from;
  };

  [[nodiscard]] std::size_t start_of(std::size_t i) const noexcept {
    return i == 0 ? 0 : marks_[i - 1].end;
  }
  [[nodiscard]] encoder_state state() const noexcept {
    return marks_.empty() ? encoder_state{0} : marks_.back().state;
  }
  void write(std::string_view piece, encoder_state state, role from);

  message_encoder encode_;
  std::shared_ptr<transcript_chunk> last_;
  std::vector<mark> marks_;
};

}  // namespace troupe

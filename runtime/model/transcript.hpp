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
  std::string arguments{}; ///< JSON text, as received

  bool operator==(const tool_call_message&) const = default;
};

/// One message before it is encoded.
struct chat_message {
  role from = role::user;
  std::string content{};
  std::vector<tool_call_message> tool_calls{}; ///< assistant only
  std::string tool_call_id{};                  ///< tool only: the call this answers

  bool operator==(const chat_message&) const = default;
};

/// Appends one encoded message to `out`. A codec's function; no state.
using message_encoder = void (*)(std::string& out, const chat_message& message);

/// The encoded messages, comma-separated, without the enclosing brackets. Cheap to copy; stays
/// valid and unchanged while the transcript goes on, on any thread.
struct transcript_view {
  std::shared_ptr<const std::string> storage;
  std::size_t size = 0; ///< bytes of *storage that belong to the view

  [[nodiscard]] std::string_view text() const {
    return storage ? std::string_view{*storage}.substr(0, size) : std::string_view{};
  }
};

/// An append-only conversation in its wire form. Value; copies share the bytes until they part.
/// Appending writes behind what views and copies can see, so it copies the conversation only when
/// its block is full (then half as large again) or when another copy has already written there.
/// Units   bytes of UTF-8; at most 4 GiB.
class transcript {
public:
  explicit transcript(message_encoder encode);

  void append(const chat_message& message);

  [[nodiscard]] transcript_view view() const;

  /// The wire form of message `i`, which must be below size(). Valid until the next append.
  [[nodiscard]] std::string_view message(std::size_t i) const;

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

private:
  struct block;

  void write(std::string_view piece);
  [[nodiscard]] bool claim(std::size_t bytes) const;

  message_encoder encode_;
  std::shared_ptr<block> block_;
  std::vector<std::uint32_t> ends_; ///< offset past each message
};

} // namespace troupe

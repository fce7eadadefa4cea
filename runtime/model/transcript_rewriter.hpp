#pragma once
// A conversation made anew from another: most messages as their bytes lie there, some shortened,
// some new.

#include "runtime/model/transcript.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// Of a transcript that must not go on meanwhile. Messages are named by their place in it.
class transcript_rewriter {
public:
  /// What the longest text of a message becomes.
  using shorter_fn = std::function<std::string(std::string_view text)>;

  explicit transcript_rewriter(const transcript& from);

  /// The message as it lies there. False, and nothing is done, where its bytes do not fit: what
  /// parts it from the message before depends on that one.
  [[nodiscard]] bool keep(std::size_t i);

  /// The same with its longest text (of a message without images: its content) changed. Who it is
  /// from, and which call it answers, stays.
  [[nodiscard]] bool keep(std::size_t i, const shorter_fn& shorter);

  /// A new message.
  void append(const chat_message& message) { out_.append(message); }

  /// Messages so far.
  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }

  /// The new conversation; the last call.
  [[nodiscard]] transcript take() { return std::move(out_); }

private:
  [[nodiscard]] std::string_view bytes_of(std::size_t i) const;
  [[nodiscard]] bool fits(std::size_t i) const;

  const transcript& from_;
  std::string text_;
  transcript out_;
};

}  // namespace troupe

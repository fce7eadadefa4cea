#pragma once
// Cuts a byte stream into frames: a 4-byte big-endian length, then so many bytes.

#include "runtime/core/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// For hostile input: a length above the limit is refused before anything is allocated for it.
class frame_splitter {
public:
  explicit frame_splitter(std::size_t max_bytes) : max_bytes_{max_bytes} {}

  void feed(std::string_view bytes) { buffer_ += bytes; }

  /// The next whole frame's body; nothing while it is incomplete.
  /// Errors  corrupt: its length is above the limit. Nothing more can be read then.
  [[nodiscard]] result<std::optional<std::string>> next();

  /// Bytes that wait for more.
  [[nodiscard]] std::size_t pending() const noexcept { return buffer_.size(); }

private:
  std::size_t max_bytes_;
  std::string buffer_;
};

/// The body with its length in front.
[[nodiscard]] std::string make_frame(std::string_view body);

}  // namespace troupe

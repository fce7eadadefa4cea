#pragma once
// What a snippet printed, in bounded memory: the head and the tail are kept, the middle is counted.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Takes raw bytes without end; gives UTF-8 of about `shown` bytes. Value.
class output_log {
public:
  explicit output_log(std::size_t shown_bytes)
    : head_limit_{shown_bytes - shown_bytes / 2}, tail_limit_{shown_bytes / 2} {}

  void append(std::string_view bytes);

  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t dropped() const noexcept;

  /// Head and tail around a notice; malformed UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string text() const;

private:
  std::size_t head_limit_;
  std::size_t tail_limit_;
  std::size_t total_ = 0;
  std::string head_;
  std::string tail_;  ///< up to twice its limit, so that it is cut seldom
};

}  // namespace troupe

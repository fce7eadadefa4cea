#pragma once
// Text on its way to a terminal or a pipe that may be read slowly, or not at all.

#include <chrono>
#include <mutex>
#include <string>

namespace troupe::cli {

/// Takes text from any thread at once; one thread writes it when the descriptor has room. What
/// waits is bounded: text beyond 1 MiB is left out, and how much of it is said in its place.
class live_output {
public:
  explicit live_output(int fd) : fd_{fd} {}

  void add(const std::string& text);

  /// Something waits to be written.
  [[nodiscard]] bool waiting() const;

  /// Writes a piece. Blocks unless poll has found room.
  void write_some();

  /// Writes all that waits, as far as it is read within that time.
  void finish(std::chrono::milliseconds longest);

  [[nodiscard]] int fd() const noexcept { return fd_; }

private:
  int fd_;
  mutable std::mutex mutex_;
  std::string text_;
  std::size_t left_out_ = 0;  ///< bytes
};

}  // namespace troupe::cli

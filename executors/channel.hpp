#pragma once
// A descriptor that the reactor watches.

#include "executors/unique_fd.hpp"
#include "runtime/net/reactor.hpp"

#include <functional>
#include <memory>

namespace troupe {

/// Owns a descriptor, and calls back once when it can be read or written. Reactor's thread only.
/// Whoever waits keeps itself alive in the callback.
class channel {
public:
  explicit channel(reactor& io);
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  void assign(unique_fd fd);
  void close() noexcept;

  [[nodiscard]] int fd() const noexcept;  ///< -1 when closed
  [[nodiscard]] bool open() const noexcept { return fd() >= 0; }

  /// One call of `fn`; none when the channel is closed first.
  void when_readable(std::function<void()> fn);
  void when_writable(std::function<void()> fn);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

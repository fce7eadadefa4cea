#pragma once
// Ctrl-C, SIGTERM and SIGHUP as something to wait for, together with the end of the work.

#include <chrono>

namespace troupe::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and all started after it, and reports them
/// instead. Made before any other thread. One per process.
class signals {
public:
  signals();
  ~signals();
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  enum class event { none, interrupted, woken };

  /// Waits for a signal, for wake(), or for the time to pass.
  event wait(std::chrono::milliseconds longest);

  /// Ends a wait from any thread; stays awake.
  void wake();

private:
  int signal_fd_ = -1;
  int wake_fd_ = -1;
};

}  // namespace troupe::cli

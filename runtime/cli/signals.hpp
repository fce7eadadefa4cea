#pragma once
// Ctrl-C, SIGTERM and SIGHUP as something to wait for, together with the end of the work.

#include <chrono>

namespace troupe::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and all started after it, and reports them
/// instead; its end gives this thread the signals back. Made before any other thread. One per
/// process.
class signals {
public:
  signals();
  ~signals();
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  enum class event { none, interrupted, woken, nudged, writable, readable };

  /// Waits for a signal, for wake(), for nudge(), until `out` (if one is given) can be written or
  /// `in` be read, or for the time to pass. The first of these that has come.
  event wait(std::chrono::milliseconds longest, int out = -1, int in = -1);

  /// Ends a wait from any thread; stays awake.
  void wake();

  /// Ends one wait from any thread.
  void nudge();

private:
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  int nudge_fd_ = -1;
};

}  // namespace troupe::cli

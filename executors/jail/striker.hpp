#pragma once
// Interrupts the Python of a sandbox, also where it does not look.

#include <csignal>

#include <sys/types.h>

namespace troupe::jail {

/// Python looks for signals between two bytecodes. One that comes a moment before a call that waits
/// is kept until the call ends, which may be never: some more signals, which say nothing
/// themselves, end the wait. The worker handles SIGURG for that; other processes ignore it.
class striker {
public:
  void strike(pid_t worker) noexcept {
    ::kill(worker, SIGINT);
    pause_ms_ = first_pause_ms;
  }

  /// How long to poll before `remind`; -1: for ever.
  [[nodiscard]] int pause_ms() const noexcept { return pause_ms_; }

  void remind(pid_t worker) noexcept {
    if (pause_ms_ < 0)
      return;
    ::kill(worker, SIGURG);
    pause_ms_ = pause_ms_ < last_pause_ms ? pause_ms_ * 2 : -1;
  }

private:
  static constexpr int first_pause_ms = 20;
  static constexpr int last_pause_ms = 1'280;
  int pause_ms_ = -1;
};

}  // namespace troupe::jail

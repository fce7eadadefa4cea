#pragma once
// The progress line of a batch: a bar on a terminal, plain lines in a pipe.

#include "runtime/agent/live.hpp"
#include "runtime/core/time.hpp"

#include <mutex>
#include <string>

namespace troupe::cli {

/// Keeps the newest state and says how it looks. Thread-safe.
class progress {
public:
  explicit progress(time_point now) : began_{now} {}

  void set(const batch_progress& p);

  /// One line: done / running / failed / accuracy so far / tokens / rate / ETA.
  [[nodiscard]] std::string line(time_point now) const;

  [[nodiscard]] batch_progress latest() const;

private:
  mutable std::mutex mutex_;
  batch_progress now_;
  std::uint64_t first_done_ = 0;  ///< by earlier sessions: not part of the rate
  bool seen_ = false;
  time_point began_;
};

/// "1h02m", "3m05s", "12s".
[[nodiscard]] std::string short_span(std::chrono::seconds span);

/// "950", "12.3k", "4.56M".
[[nodiscard]] std::string short_count(double n);

}  // namespace troupe::cli

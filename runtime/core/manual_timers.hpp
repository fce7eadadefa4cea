#pragma once
// A timer service whose time only the test moves.

#include "runtime/core/timer_queue.hpp"

#include <mutex>

namespace troupe {

/// `advance` runs what falls due, in order, on the caller's thread, with `now` at each one's time.
class manual_timers final : public timers {
public:
  [[nodiscard]] time_point now() const override;
  timer_id at(time_point when, callback fn) override;
  bool cancel(timer_id id) override;

  void advance(steady_clock::duration span);

  /// When the next timer is due; nothing when none is pending.
  [[nodiscard]] std::optional<time_point> next();

private:
  mutable std::mutex mutex_;
  time_point now_{std::chrono::hours{1}};
  timer_queue queue_;
};

}  // namespace troupe

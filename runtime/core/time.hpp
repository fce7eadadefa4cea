#pragma once
// Time as troupe uses it: steady for deadlines, a timer service that tests can drive by hand.

#include <chrono>
#include <cstdint>
#include <functional>

namespace troupe {

using millis = std::chrono::milliseconds;
using micros = std::chrono::microseconds;
using steady_clock = std::chrono::steady_clock;
using time_point = steady_clock::time_point;

/// A point that never comes: "no deadline".
inline constexpr time_point never = time_point::max();

/// `now + span`, or never when that would overflow.
[[nodiscard]] constexpr time_point after(time_point now, steady_clock::duration span) {
  return span >= never - now ? never : now + span;
}

/// Microseconds since the Unix epoch, for journals. Reads the wall clock.
[[nodiscard]] inline std::int64_t wall_micros() {
  return std::chrono::duration_cast<micros>(std::chrono::system_clock::now().time_since_epoch())
    .count();
}

using timer_id = std::uint64_t;

/// The one place for delays and deadlines; CAF's own clock is quadratic and is not used.
/// Thread-safe. A callback runs on the service's thread and must not block.
class timers {
public:
  using callback = std::function<void()>;

  virtual ~timers() = default;

  [[nodiscard]] virtual time_point now() const = 0;

  /// Calls `fn` once, at `when` or soon after. Ids are never reused and never 0.
  virtual timer_id at(time_point when, callback fn) = 0;

  /// Forgets the timer. False when it has fired already, or never was. After a true answer
  /// `fn` will not be called.
  virtual bool cancel(timer_id id) = 0;

  timer_id in(steady_clock::duration delay, callback fn) {
    return at(after(now(), delay), std::move(fn));
  }
};

}  // namespace troupe

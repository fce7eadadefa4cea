#pragma once
// How many requests one endpoint takes at once: found by trying, given up when it refuses.

#include "runtime/core/time.hpp"

#include <cstddef>

namespace troupe {

struct concurrency_settings {
  std::size_t first = 8;  ///< to begin with
  std::size_t most = 64;  ///< never more; at least 1
};

/// Additive increase, multiplicative decrease, with a slow start: one place more per answer until
/// the first refusal, afterwards one per round of answers. It grows only by answers that come while
/// every place is taken. A refusal halves it, once for all requests that were under way. Then it
/// grows fast again up to nearly what it was when the rate was too high, which the rate limit
/// mends, and to three quarters of it when the endpoint was overloaded. Source  TCP's congestion
/// control, RFC 5681, section 3.1; growth only when used: RFC 7661.
class concurrency {
public:
  explicit concurrency(concurrency_settings s = {});

  [[nodiscard]] std::size_t limit() const { return static_cast<std::size_t>(limit_); }

  /// An answer; `in_flight` counts it still.
  void answered(std::size_t in_flight);

  /// Refused: too many requests, or (`overloaded`) more than the endpoint can bear.
  void refused(bool overloaded, time_point sent_at, time_point now);

  /// The refusals were about nothing: it may grow as fast as at the start.
  void forgive() { threshold_ = most_; }

  void set_most(std::size_t most);

private:
  double limit_;
  double most_;
  double threshold_;  ///< below it growth is fast
  time_point cut_at_ = time_point::min();
};

}  // namespace troupe

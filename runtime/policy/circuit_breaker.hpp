#pragma once
// Whether an endpoint is worth asking at all: one that fails and fails is left alone for a while.

#include "runtime/core/time.hpp"

#include <cstdint>

namespace troupe {

struct breaker_settings {
  std::uint32_t failures = 8;  ///< in a row, until it opens; 0: never
  millis first_pause{1'000};   ///< until one request may try again; doubles with each that fails
  millis longest_pause{30'000};
};

/// Closed: all may go. Open: nobody, until the pause is over. Half open: one, whose end decides.
/// Source  M. Nygard, "Release It!", chapter "Stability Patterns" (circuit breaker).
class circuit_breaker {
public:
  enum class state : std::uint8_t { closed, open, half_open };

  explicit circuit_breaker(breaker_settings s = {}) : settings_{s} {}

  [[nodiscard]] state at(time_point now) const;

  /// When a request may go: `now`; the pause's end; never while the one of half open is under way.
  [[nodiscard]] time_point ready_at(time_point now) const;

  /// A request goes, at a time when it may.
  void started(time_point now);

  void succeeded();

  /// The endpoint's own failure of a request that was sent at `sent_at`: no connection, no answer
  /// in time, a 5xx. One sent before it opened is no news.
  void failed(time_point sent_at, time_point now);

  /// A request ended without a verdict: another one may try.
  void undecided(time_point sent_at) { probing_ = probing_ && sent_at < opened_at_; }

  /// Pauses that ended with one more failure, since it was last closed.
  [[nodiscard]] std::uint32_t failed_probes() const { return failed_probes_; }

private:
  void open(time_point now);

  breaker_settings settings_;
  std::uint32_t in_row_ = 0;
  std::uint32_t failed_probes_ = 0;
  bool open_ = false;
  bool probing_ = false;
  time_point opened_at_ = time_point::min();
  time_point until_{};
};

}  // namespace troupe

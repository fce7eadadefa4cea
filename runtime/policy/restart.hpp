#pragma once
// What follows a child's end: OTP's restart semantics, with a backoff between restarts.

#include "runtime/core/random.hpp"
#include "runtime/core/time.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace troupe {

/// OTP's three: restart always, after an abnormal end only, never.
enum class restart_type : std::uint8_t { permanent, transient, temporary };

/// How a child ended, as its supervisor sees it.
struct ending {
  bool normal = false;  ///< it stopped by itself, or was told to
  std::string reason;   ///< one line for the journal
};

/// Source  OTP design principles, "Supervisor Behaviour": at most `max_restarts` in `within`,
///         beyond which the supervisor itself ends. The backoff is ours: full jitter, doubling
///         from `first_delay` up to `longest_delay`, back to the first after `within` without end.
struct restart_settings {
  std::uint32_t max_restarts = 5;
  millis within{10'000};
  millis first_delay{10};
  millis longest_delay{5'000};
  bool jitter = true;  ///< false: the full delay, for tests and for whoever wants it steady
};

struct restart_after {
  millis delay;
};
struct forget {};
struct give_up {
  std::string why;
};

/// The memory of one supervisor's restarts. Pure: `now` is an argument, no clock is read.
class restart_policy {
public:
  explicit restart_policy(restart_settings settings, std::uint64_t seed = 1);

  /// What follows the end `how`, at `now`, of a child of that type. A restart is counted when it
  /// is granted. An end that calls for no restart counts for nothing, as in OTP.
  [[nodiscard]] std::variant<restart_after, forget, give_up>
  on_exit(restart_type type, const ending& how, time_point now);

  /// Restarts that still count against `max_restarts` at `now`.
  [[nodiscard]] std::uint32_t recent_restarts(time_point now);

private:
  void forget_old(time_point now);
  [[nodiscard]] millis next_delay(time_point now);

  restart_settings settings_;
  std::deque<time_point> restarts_;  ///< those not older than `within`
  std::uint32_t streak_ = 0;         ///< ends with less than `within` between neighbours
  std::optional<time_point> last_end_;
  rng random_;
};

}  // namespace troupe

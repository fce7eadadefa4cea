#pragma once
// When to try a failed model call again. Values and pure functions.

#include "runtime/core/random.hpp"
#include "runtime/core/time.hpp"
#include "runtime/policy/failure.hpp"

#include <optional>
#include <variant>

namespace troupe {

struct retry_limits {
  std::uint32_t max_attempts = 6;  ///< requests in all, the first included; at least 1
  millis base{500};                ///< cap of the first delay
  millis cap{30'000};              ///< no own delay is longer; the server's word may be
  millis longest_hint{300'000};    ///< a Retry-After beyond this is final
};

/// Delay before try number `attempt`: exponential with full jitter.
/// Shape   `attempt` counts from 2; `hint` is the server's Retry-After, if one came.
/// Units   milliseconds of steady time; uniform in [0, min(cap, base * 2^(attempt-2))], but never
///         below `hint`.
/// Errors  none.
/// Source  RFC 9110, section 10.2.3; "Exponential Backoff And Jitter", AWS Architecture Blog.
[[nodiscard]] millis retry_delay(const retry_limits& limits, std::uint32_t attempt,
                                 std::optional<millis> hint, rng& random);

struct try_again {
  millis delay;
};
struct stop_trying {
  std::string_view why;  ///< "final", "attempts", "deadline", "retry-after too long"
};

/// What follows a failure of try number `attempt` (from 1) at `now`: the whole chain stays inside
/// `deadline`.
[[nodiscard]] std::variant<try_again, stop_trying>
after_failure(const retry_limits& limits, failure_class kind, std::uint32_t attempt,
              std::optional<millis> hint, time_point now, time_point deadline, rng& random);

}  // namespace troupe

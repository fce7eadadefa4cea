#include "runtime/policy/retry.hpp"

#include "runtime/policy/backoff.hpp"

#include <algorithm>

namespace troupe {

millis retry_delay(const retry_limits& limits, std::uint32_t attempt, std::optional<millis> hint,
                   rng& random) {
  auto doublings = attempt > 2 ? attempt - 2 : 0;
  auto own = full_jitter(doubled(limits.base, doublings, limits.cap), random);
  return std::max(own, hint.value_or(millis{0}));
}

std::variant<try_again, stop_trying> after_failure(const retry_limits& limits, failure_class kind,
                                                   std::uint32_t attempt,
                                                   std::optional<millis> hint, time_point now,
                                                   time_point deadline, rng& random) {
  if (!is_transient(kind))
    return stop_trying{"final"};
  if (attempt >= limits.max_attempts)
    return stop_trying{"attempts"};
  if (hint && *hint > limits.longest_hint)
    return stop_trying{"retry-after too long"};
  auto delay = retry_delay(limits, attempt + 1, hint, random);
  if (after(now, delay) >= deadline && deadline != never)
    return stop_trying{"deadline"};
  return try_again{delay};
}

}  // namespace troupe

#pragma once
// The one formula for growing delays, used between tries and between restarts.

#include "runtime/core/random.hpp"
#include "runtime/core/time.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// `first * 2^doublings`, at most `longest`; does not overflow. Negative inputs count as zero.
[[nodiscard]] constexpr millis doubled(millis first, std::uint32_t doublings, millis longest) {
  auto delay = std::max(first, millis{0});
  longest = std::max(longest, millis{0});
  for (; doublings > 0 && delay < longest && delay > millis{0}; --doublings)
    delay = delay > longest / 2 ? longest : delay * 2;
  return std::min(delay, longest);
}

/// Uniform in [0, limit], whole milliseconds.
[[nodiscard]] inline millis full_jitter(millis limit, rng& random) {
  auto span = static_cast<double>(limit.count()) + 1.0;
  return std::min(limit, millis{static_cast<millis::rep>(random.uniform() * span)});
}

}  // namespace troupe

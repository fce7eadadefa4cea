#pragma once
// Tokens by what they cost.

#include <cstdint>

namespace troupe {

/// Tokens as the server counted them. `input` includes `cached` and `cache_written`; `output`
/// includes `reasoning`.
struct token_usage {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t cached = 0;  ///< read from the provider's prompt cache
  std::uint64_t reasoning = 0;
  std::uint64_t cache_written = 0;  ///< put into it; some providers charge more for these
  std::uint64_t untold = 0;  ///< in a run's sum: replies that told none, so that it is too small

  token_usage& operator+=(const token_usage& x) {
    input += x.input;
    output += x.output;
    cached += x.cached;
    reasoning += x.reasoning;
    cache_written += x.cache_written;
    untold += x.untold;
    return *this;
  }
  [[nodiscard]] std::uint64_t total() const noexcept { return input + output; }
  bool operator==(const token_usage&) const = default;
};

}  // namespace troupe

#pragma once
// A server's limits in its own words, as they come with an answer.

#include "runtime/core/time.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// What a server counts. `tokens` are input and output together.
enum class rate_quantity : std::uint8_t { requests, tokens, input_tokens, output_tokens };

/// One quantity's state after the answered request. Negative: not said.
struct rate_word {
  rate_quantity of = rate_quantity::requests;
  double limit = -1;
  double remaining = -1;
  millis reset{-1};          ///< until all of `limit` is there again
  bool from_answer = false;  ///< `reset` counts from the answer, not from the request's admission

  bool operator==(const rate_word&) const = default;
};

/// Empty: the server states no limits.
using rate_report = std::vector<rate_word>;

}  // namespace troupe

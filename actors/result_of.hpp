#pragma once
// A run's end as it is kept and handed back.

#include "actors/messages.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// `started_at` is in microseconds since the epoch. Unscored.
[[nodiscard]] run_result result_of(const run_finished& how, const std::string& sample,
                                   std::uint32_t epoch, std::int64_t started_at);

}  // namespace troupe

#pragma once
// What `troupe mock` says about itself: figures since the last line, and of the whole.

#include "runtime/core/json.hpp"
#include "runtime/host/mock_server.hpp"

#include <string>

namespace troupe {

/// One line on what happened between two moments: requests, errors, CPU, saturation, lag.
[[nodiscard]] std::string stats_line(const mock_stats& before, const mock_stats& now);

/// Several lines on all of it.
[[nodiscard]] std::string stats_summary(const mock_stats& all);

/// The same for machines; `before` is {} for the whole. Times are in seconds and microseconds.
[[nodiscard]] json stats_json(const mock_stats& before, const mock_stats& now);

/// Share of one core that its thread used.
[[nodiscard]] double saturation(const mock_stats& before, const mock_stats& now);

}  // namespace troupe

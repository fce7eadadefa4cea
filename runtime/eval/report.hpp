#pragma once
// What a batch came to: the figures of `troupe report`, as a value, as text and as JSON.

#include "runtime/eval/statistics.hpp"
#include "runtime/journal/journal.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Percentiles of one figure over runs.
struct spread {
  std::size_t n = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double most = 0;
};

/// Sums over all runs of the batch, errored and cancelled ones included: they were paid for too.
struct work_totals {
  token_usage tokens;
  std::uint64_t turns = 0;
  std::uint64_t model_attempts = 0;
  std::uint64_t tool_calls = 0;
  std::uint64_t snippets = 0;
  std::uint64_t snippet_failures = 0;
  std::uint64_t sandboxes = 0;
  micros wall{0};  ///< summed over runs, so more than the batch took
  micros model_wait{0};
  micros sandbox_wall{0};
  micros sandbox_cpu{0};
};

struct report {
  json config;  ///< the batch record's own JSON; null when it is unreadable
  json machine;
  json stats;
  std::string end;                  ///< of the batch; empty: running, or killed
  std::int64_t started_at = 0;      ///< microseconds since the epoch
  double elapsed_s = 0;             ///< first start to end, pauses between resumptions included
  std::size_t runs = 0;             ///< results, that is (sample, epoch) pairs that ended
  std::size_t samples = 0;          ///< different ones among them
  std::size_t planned_samples = 0;  ///< of the dataset, as far as it was asked for
  std::size_t planned_epochs = 1;
  std::vector<std::string> server_models;  ///< as the servers named themselves
  accuracy score;
  end_counts counts;
  std::map<std::string, std::uint64_t> ends;
  std::vector<std::pair<std::string, std::uint64_t>> errors;  ///< most frequent first, at most 5
  work_totals totals;
  spread turn_wall_ms;                    ///< a run's wall time over its turns
  spread turn_model_ms;                   ///< the same of its wait for the model
  std::optional<double> cpu_us_per_turn;  ///< of our process, last session: CPU over model calls
};

/// Takes the batch record as it stands in the journal; members that an older or newer program did
/// not write are left out.
/// Shape  config {"options": {name: {"value": ...}}, "dataset": {"path", "sha256", "samples"}},
///        machine {"cores", "memory_bytes", "kernel", ...}, stats {"process": {"cpu_user_s",
///        "cpu_system_s", ...}, "model": {"calls", ...}, "sandboxes": {"opened", ...}, ...}.
[[nodiscard]] report make_report(const batch_record& batch, const std::vector<run_result>& results);

/// A table for people: about 80 columns, safe for a terminal, no colours.
[[nodiscard]] std::string to_text(const report& r);

[[nodiscard]] json to_json(const report& r);

}  // namespace troupe

#pragma once
// One SQLite file per batch: what was asked for, every event of every run, every result.
// Blocking; only the journal's own thread and offline commands (report, trace) call it.

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/json.hpp"
#include "runtime/model/chat.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One step of one run. `seq` counts from 1 within the run; (run, seq) is unique.
/// The payload of run_started carries "sample_id" (string) beside what the agent needs: by it
/// `runs_of` finds runs that have not ended.
struct journal_event {
  run_id run;
  std::uint32_t seq = 0;
  std::int64_t at = 0;  ///< microseconds since the epoch
  std::string kind;     ///< run_started, model_requested, model_replied, action, ...
  std::string payload;  ///< JSON object

  bool operator==(const journal_event&) const = default;
};

/// The end of one (sample, epoch). Exactly one row per pair.
struct run_result {
  run_id run;
  std::string sample_id;
  std::uint32_t epoch = 1;
  std::string end;              ///< success, max_steps, deadline, budget, stuck, cancelled, error
  std::string answer;           ///< text of the answer; empty when there is none
  json answer_value;            ///< plain JSON of the answer; null when there is none
  std::string error;            ///< one line, for ends other than success
  std::optional<double> score;  ///< in [0, 1]; empty: unscored
  std::string score_note;       ///< how the scorer decided
  std::uint32_t turns = 0;      ///< model replies
  std::uint32_t snippets = 0;
  std::uint32_t snippet_failures = 0;  ///< raised, timed out or killed
  std::uint32_t sandboxes = 0;         ///< opened for this run
  std::uint32_t tool_calls = 0;
  std::uint32_t model_attempts = 0;  ///< requests sent, retries included
  token_usage tokens;
  std::int64_t started_at = 0;  ///< microseconds since the epoch
  micros wall{0};
  micros model_wait{0};
  micros sandbox_wall{0};
  micros sandbox_cpu{0};
  std::string model;  ///< as the server returned it; several, with ", ", after a fallback
};

/// What a batch was: kept as JSON so that a newer report can read an older file.
struct batch_record {
  std::string config;   ///< JSON: every option with its value and where it came from
  std::string machine;  ///< JSON: cores, memory, kernel, isolation, versions
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;  ///< 0 while running or after a kill
  std::string end;            ///< completed, stopped, cancelled; empty while running
  std::string stats;          ///< JSON: executor, model client and process figures at the end
  /// An order, not kept: the results that ended as error are forgotten with it, so that their
  /// samples are run again. Their events stay.
  bool forget_errors = false;
};

/// One item of a batch; appended in order, committed together.
struct journal_entry {
  std::vector<journal_event> events;
  std::optional<run_result> result;
};

/// An open journal. Not thread-safe. Resource.
class journal {
public:
  static constexpr int schema_version = 3;

  /// Opens or creates for writing (WAL, one writer).
  /// Errors  not_found (folder), denied (permissions, or another process is writing it),
  ///         corrupt (not a journal), invalid_argument (written by a newer troupe: says which).
  static result<std::unique_ptr<journal>> open(const std::string& path);

  /// Opens an existing journal for reading, also while another process writes it. Writing to it
  /// is denied.
  /// Errors  not_found (file), denied, corrupt, invalid_argument: as for open.
  static result<std::unique_ptr<journal>> open_readonly(const std::string& path);

  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  /// Appends all entries in one transaction. A result for a (sample, epoch) that has one already
  /// is ignored, and so is an event whose (run, seq) is there.
  /// Errors  unavailable (disk full or I/O error: nothing of the call was written; may be retried).
  [[nodiscard]] result<void> append(const std::vector<journal_entry>& entries);

  [[nodiscard]] result<void> put_batch(const batch_record& record);
  [[nodiscard]] result<batch_record> batch() const;

  /// The highest run id used, 0 when none: a resumed batch goes on above it.
  [[nodiscard]] result<run_id> last_run() const;

  /// All results in order of (sample, epoch).
  [[nodiscard]] result<std::vector<run_result>> results() const;

  /// The runs of a sample, newest first, finished or not.
  [[nodiscard]] result<std::vector<run_id>> runs_of(const std::string& sample_id) const;

  [[nodiscard]] result<std::vector<journal_event>> events(run_id run) const;

private:
  struct impl;
  explicit journal(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

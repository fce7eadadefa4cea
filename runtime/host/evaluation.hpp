#pragma once
// A batch over a dataset, or one task: from settings to results. The only way that the command
// line starts work.

#include "config/options.hpp"
#include "runtime/agent/live.hpp"
#include "runtime/core/error.hpp"
#include "runtime/eval/dataset.hpp"
#include "runtime/journal/journal.hpp"
#include "runtime/policy/hooks.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe {

struct evaluation_request {
  settings options;
  dataset data;
  std::string journal_path;  ///< empty: nothing is kept
  env_lookup env;
  progress_sink progress;          ///< may be empty; called often, must not block
  event_sink events;               ///< may be empty; must not block
  approver approve;                ///< for --approve ask; empty: nobody is there to ask
  std::function<bool()> unwanted;  ///< asked just before the work begins; may be empty
  std::function<void()> finished;  ///< once, from any thread, when wait() will not block long
};

struct evaluation_outcome {
  std::string end;     ///< completed, stopped, cancelled, journal_failed, failed
  std::string detail;  ///< for the last two: one line for the user
  batch_progress progress;
  std::vector<run_result>
    results;  ///< of this session, when nothing is kept or there is one sample
};

/// Resource: owns the runtime; its end is the end of every thread, socket and sandbox.
class evaluation {
public:
  /// Opens or continues the journal and starts. (sample, epoch) pairs with a result are not run
  /// again.
  /// Errors  all that is wrong before the first run: no key, bad script, a journal that belongs to
  ///         another dataset, no isolation; each with its mend.
  static result<std::unique_ptr<evaluation>> start(evaluation_request request);
  ~evaluation();

  /// Other limits on the model from now on: rpm, tpm and max_connections of `limits`. Any thread.
  void tune(const settings& limits);

  /// Takes no new samples; the running ones finish. Idempotent, any thread.
  void stop();

  /// Cancels the running ones too. Idempotent, any thread.
  void cancel(const std::string& reason);

  /// Waits for the end, writes the batch record, stops the runtime. Once.
  [[nodiscard]] evaluation_outcome wait();

private:
  struct impl;
  explicit evaluation(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

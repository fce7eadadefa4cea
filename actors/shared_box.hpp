#pragma once
// The sandbox that a manager lends to its managed agents: its variables and files are common to
// them, and one snippet runs at a time.

#include "actors/messages.hpp"
#include "actors/snippet_runs.hpp"

#include <caf/typed_response_promise.hpp>

#include <deque>

namespace troupe {

/// A part of a manager's actor.
class shared_box {
public:
  /// `code` is where the manager's own code would run: it has none.
  shared_box(run_core& core, snippet_runs& code) : core_{core}, code_{code} {}

  [[nodiscard]] caf::result<snippet_answer> on_run(lent_run x);

  /// That run waits no more: what it has running is interrupted.
  void on_end(run_id run);

  /// Passes on to the run whose code it is from.
  void on_wanted(tool_wanted x);
  void on_output(const output_seen& x);

private:
  using promise = caf::typed_response_promise<snippet_answer>;

  struct turn {
    lent_run what;
    promise answer;
    time_point since;
    bool unwanted = false;
  };

  void begin_next();
  void on_outcome(result<snippet_outcome> o);

  run_core& core_;
  snippet_runs& code_;
  std::deque<turn> turns_;  // the first one runs
};

}  // namespace troupe

#pragma once
// A run's side of its sandbox: opened when the first code comes, the same for all of the run's.

#include "actors/run_core.hpp"

#include <functional>

namespace troupe {

/// A part of a run's actor. Outcomes reach its loop as snippet_done or sandbox_failed.
class snippet_runs {
public:
  /// Fails when there is no sandbox to be had.
  using done_fn = std::function<void(result<snippet_outcome>)>;

  explicit snippet_runs(run_core& core) : core_{core} {}

  /// Of the loop, by leave of the hooks.
  void begin(snippet code);

  /// The loop's code runs, or waits for its sandbox.
  [[nodiscard]] bool any() const noexcept { return running_; }

  /// Code of somebody else, while the loop has none. `done` once, or not at all when the run ends.
  void run(snippet code, done_fn done);

  /// Of whatever runs.
  void interrupt();

  void close();

  /// With a network, when all connections have been told.
  void close_then(const std::function<void()>& then);

private:
  void run_own(snippet code);
  void run_lent(snippet code);
  void open(snippet code, done_fn done, std::uint32_t tries);
  void open_later(snippet code, done_fn done, std::uint32_t tries, const error& why);
  void run_in_box(snippet code, done_fn done);
  void on_own(result<snippet_outcome> o);
  [[nodiscard]] bool lent() const { return core_.run.manager && core_.run.manager->lends; }

  run_core& core_;
  caf::actor box_;
  bool running_ = false;
};

/// Time spent waiting is not the snippet's: its deadlines move with it.
void delay(snippet& code, steady_clock::duration waited);

}  // namespace troupe

#pragma once
// A run's side of its sandbox: opened when the first code comes, the same for all of the run's.

#include "actors/run_core.hpp"

#include <functional>

namespace troupe {

/// A part of a run's actor. Outcomes reach its loop as snippet_done or sandbox_failed.
class snippet_runs {
public:
  explicit snippet_runs(run_core& core) : core_{core} {}

  /// By leave of the hooks.
  void begin(snippet code);

  /// Code runs, or waits for its sandbox.
  [[nodiscard]] bool any() const noexcept { return running_; }

  void close();

  /// With a network, when all connections have been told.
  void close_then(const std::function<void()>& then);

private:
  void run(snippet code);
  void open(snippet code, std::uint32_t tries);
  void open_later(snippet code, std::uint32_t tries, const error& why);
  void run_in_box(snippet code);
  void on_outcome(snippet_outcome o);

  run_core& core_;
  caf::actor box_;
  bool running_ = false;
};

}  // namespace troupe

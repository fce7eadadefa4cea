#pragma once
// Runs many samples: so many at once, each by an agent actor of its own; one result each.

#include "actors/agent.hpp"
#include "actors/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// One (sample, epoch) that has no result yet.
struct batch_item {
  std::string sample;
  std::uint32_t epoch = 1;
  std::size_t index = 0;  ///< the caller's: which sample
};

enum class batch_end : std::uint8_t {
  completed,      ///< every item has a result
  stopped,        ///< no new samples were taken, the running ones have results
  cancelled,      ///< the running ones were cancelled; they have no result
  budget,         ///< nothing is left to spend; runs that it cut have no result
  journal_failed  ///< what happens could not be written any more
};

[[nodiscard]] std::string_view to_string(batch_end end) noexcept;

struct batch_outcome {
  batch_end end = batch_end::completed;
  std::string detail;  ///< for journal_failed and budget: one line for the user
  batch_progress progress;
};

struct batch_plan {
  std::vector<batch_item> items;
  std::size_t max_concurrency = 64;
  batch_progress before;  ///< what earlier sessions have done already
  std::shared_ptr<const agent_context> agent;
  /// The input and files of an item. Called when it starts.
  std::function<std::pair<run_started, std::vector<sandbox_file>>(const batch_item&)> input;
  /// Fills score and score_note. Must not block.
  std::function<void(const batch_item&, run_result&)> score;
  /// Why no more can be spent by any run; empty: more can. May be null. Must not block.
  std::function<std::string()> exhausted;
  std::function<void(batch_outcome)> done;  ///< once, on any thread
};

/// Spawns the batch. `agents` is a simple_one_for_one supervisor. Understands batch_stop,
/// batch_cancel and stop (as batch_cancel); quits after `done`. A sample whose agent crashes is
/// run once more; when that crashes too it is quarantined: its result is an error that says so.
[[nodiscard]] caf::actor spawn_batch(caf::actor_system& sys, batch_plan plan, caf::actor agents);

}  // namespace troupe

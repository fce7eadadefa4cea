#pragma once
// A set of pending timers: a min-heap with cancellation. No clock, no thread, no lock.

#include "runtime/core/time.hpp"

#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Pending callbacks in order of time, equal times in order of insertion.
class timer_queue {
public:
  timer_id add(time_point when, timers::callback fn);

  /// O(1); the heap entry is dropped when it surfaces, or when dead entries outnumber live ones.
  bool cancel(timer_id id);

  /// When the first pending timer is due.
  [[nodiscard]] std::optional<time_point> next();

  /// Takes the first timer due at `now`, if any.
  std::optional<timers::callback> pop_due(time_point now);

  [[nodiscard]] std::size_t size() const noexcept { return callbacks_.size(); }

private:
  struct entry {
    time_point when;
    timer_id id;
  };

  void drop_dead_top();
  void compact();

  std::vector<entry> heap_;
  std::unordered_map<timer_id, timers::callback> callbacks_;
  timer_id last_id_ = 0;
};

}  // namespace troupe

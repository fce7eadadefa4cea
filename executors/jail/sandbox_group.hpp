#pragma once
// The control groups of one sandbox, where there are any, and what they count.

#include "executors/executor.hpp"
#include "executors/jail/cgroup.hpp"

#include <memory>

namespace troupe::jail {

/// Without groups all of it does nothing. Reactor's thread only.
class sandbox_group {
public:
  /// Errors  unavailable: a directory or a file in it cannot be made or written.
  [[nodiscard]] result<void> create(cgroup_tree& tree, const sandbox_limits& limits, int oom_event);

  /// True also when they have ended.
  [[nodiscard]] explicit operator bool() const noexcept { return tree_ != nullptr; }

  /// Empty where there are none.
  [[nodiscard]] result<cgroup_entry> entry() const;
  void kill() const;

  /// True once nothing is in them any more, and they are gone or kept empty for another sandbox.
  /// The kernel lets go of a group a moment after its last process.
  [[nodiscard]] bool end();

  /// The kernel has killed for memory since `forget_oom`.
  [[nodiscard]] bool out_of_memory() const { return group_ && group_->oom_kills() > seen_kills_; }
  void forget_oom();

  /// Adds what the snippet that has just ended took, its children's part too.
  void account(sandbox_usage& usage);

  /// The same, read from the kernel's counters in any case.
  void count(sandbox_usage& usage);

  /// Reads the memory that is in use before any snippet, which the first short one is told.
  void note_rest();

  /// What the whole life took, into the report; to be read before they are removed.
  void report(close_report& r) const;

  /// The part of `total`, the whole life's CPU time, that no snippet has been charged yet.
  [[nodiscard]] micros charge(micros total);

private:
  cgroup_tree* tree_ = nullptr;
  cgroup_limits limits_;
  bool limited_ = false;  ///< all of limits_ are in force
  std::unique_ptr<cgroup> group_;
  micros charged_{0};
  std::uint64_t memory_at_rest_ = 0;  ///< when the last snippet that was counted had ended
  std::uint64_t seen_kills_ = 0;
};

}  // namespace troupe::jail

#include "executors/jail/sandbox_group.hpp"

#include <algorithm>
#include <utility>

namespace troupe::jail {
namespace {

/// Its worker may have all the processes that its rlimit allows; init and the like come on top.
constexpr std::uint32_t own_processes = 4;

/// Reading the kernel's counters takes a third of a short snippet's time. Such a one states its own
/// CPU time, which is held to its wall time, and the next longer one, or the end, is charged the
/// rest; its memory is what was in use when the last longer one had ended.
constexpr micros worth_counting{2'000};

}  // namespace

result<void> sandbox_group::create(cgroup_tree& tree, const sandbox_limits& limits, int oom_event) {
  if (tree.kind() == cgroup_kind::none)
    return {};
  tree_ = &tree;
  limits_ = {limits.memory_bytes, limits.processes + own_processes, limits.cpus};
  group_ = tree.take_spare(limits_);
  if (group_) {
    forget_oom();
  } else {
    group_ = tree.make();
    if (auto made = group_->create(limits_); !made)
      return made;
    group_->notify_oom(oom_event);
  }
  limited_ = true;
  return {};
}

bool sandbox_group::end() {
  if (!group_)
    return true;
  auto ended = limited_ ? tree_->give_back(group_, limits_) : group_->remove();
  if (ended)
    group_.reset();
  return ended;
}

result<cgroup_entry> sandbox_group::entry() const {
  return group_ ? group_->entry() : cgroup_entry{};
}

void sandbox_group::kill() const {
  if (group_)
    group_->kill();
}

void sandbox_group::forget_oom() {
  if (group_)
    seen_kills_ = group_->oom_kills();
}

void sandbox_group::account(sandbox_usage& usage) {
  if (usage.wall >= worth_counting) {
    count(usage);
  } else if (group_) {
    charged_ += usage.cpu;
    if (memory_at_rest_ == 0)
      note_rest();
    usage.max_rss_bytes = memory_at_rest_;
  }
}

void sandbox_group::count(sandbox_usage& usage) {
  if (!group_)
    return;
  usage.cpu = charge(group_->cpu());
  usage.max_rss_bytes = group_->peak_memory_bytes();
  group_->reset_peak();
  note_rest();
}

void sandbox_group::note_rest() {
  if (group_)
    memory_at_rest_ = group_->peak_memory_bytes();
}

void sandbox_group::report(close_report& r) const {
  if (!group_)
    return;
  r.cpu = group_->cpu();
  r.peak_memory_bytes = group_->peak_memory_bytes();
}

micros sandbox_group::charge(micros total) {
  return std::max(micros{0}, total - std::exchange(charged_, total));
}

}  // namespace troupe::jail

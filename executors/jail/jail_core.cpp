#include "executors/jail/jail_core.hpp"

#include "executors/jail/jail_session.hpp"
#include "executors/jail/zygote_pool.hpp"

#include <algorithm>

#include <sys/eventfd.h>

namespace troupe::jail {

jail_core::jail_core(reactor& r, std::function<std::uint64_t()> memory_left)
  : io{r}, groups{cgroup_tree::none()}, memory{std::move(memory_left)}, oom_{r} {}

void jail_core::start(const std::string& zygote_path,
                      const std::vector<sandbox_profile>& profiles) {
  groups = cgroup_tree::probe();
  if (groups.kind() != cgroup_kind::none) {
    oom_.assign(unique_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)});
    watch_oom();
  }
  for (const auto& p : profiles) {
    pools_.push_back(std::make_shared<zygote_pool>(shared_from_this(), zygote_path, p));
    pools_.back()->start();
  }
}

std::vector<std::string> jail_core::profile_names() const {
  std::vector<std::string> names;
  for (const auto& p : pools_)
    names.push_back(p->profile().name);
  return names;
}

std::shared_ptr<zygote_pool> jail_core::pool(const std::string& profile) const {
  auto it = std::ranges::find_if(pools_, [&](auto& p) { return p->profile().name == profile; });
  return it == pools_.end() ? nullptr : *it;
}

/// One event for all sandboxes: which it was is read from their groups.
void jail_core::watch_oom() {
  oom_.when_readable([weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self)
      return;
    std::uint64_t count = 0;
    if (::read(self->oom_.fd(), &count, sizeof count) > 0) {
      auto all = self->sessions_;
      for (const auto& s : all)
        s->check_memory();
    }
    self->watch_oom();
  });
}

void jail_core::opening(std::shared_ptr<jail_session> s) {
  sessions_.insert(std::move(s));
}

void jail_core::opened(micros took) {
  std::lock_guard lock{mutex_};
  ++stats_.opened;
  ++stats_.live;
  stats_.open_total += took;
}

void jail_core::open_failed() {
  std::lock_guard lock{mutex_};
  ++stats_.open_failures;
}

void jail_core::ended(const std::shared_ptr<jail_session>& s, bool was_open,
                      const close_report& report) {
  sessions_.erase(s);
  {
    std::lock_guard lock{mutex_};
    if (was_open) {
      ++stats_.closed;
      --stats_.live;
      stats_.teardown_total += report.teardown;
    }
    if (!report.clean())
      ++stats_.unclean_closes;
  }
  close_zygotes_when_empty();
}

unsigned jail_core::take_slot() {
  auto it = std::ranges::find(slots_, false);
  if (it == slots_.end())
    it = slots_.insert(it, false);
  *it = true;
  return static_cast<unsigned>(it - slots_.begin());
}

void jail_core::free_slot(unsigned slot) {
  slots_[slot] = false;
}

void jail_core::close(std::function<void()> done) {
  closing_ = true;
  closed_ = std::move(done);
  for (const auto& p : pools_)
    p->drain();
  auto all = sessions_;
  for (const auto& s : all)
    s->close({});
  close_zygotes_when_empty();
}

void jail_core::close_zygotes_when_empty() {
  if (!closing_ || !sessions_.empty() || !closed_)
    return;
  auto left = std::make_shared<std::size_t>(pools_.size());
  auto all_closed = [self = shared_from_this(), left, done = std::exchange(closed_, nullptr)] {
    if (--*left > 0)
      return;
    self->oom_.close();
    self->groups = cgroup_tree::none();
    self->pools_.clear();  // they hold us
    done();
  };
  for (const auto& p : std::vector{pools_})
    p->zygote().close(all_closed);
}

executor_info jail_core::info() const {
  return pools_.front()->info();
}

executor_stats jail_core::stats() const {
  std::lock_guard lock{mutex_};
  return stats_;
}

}  // namespace troupe::jail

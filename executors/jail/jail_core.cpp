#include "executors/jail/jail_core.hpp"

#include "executors/jail/jail_session.hpp"

#include <algorithm>

#include <sys/eventfd.h>

namespace troupe::jail {
namespace {

constexpr millis refill_pause{2};

std::string isolation_text(const zygote_hello& hello, int lacking, cgroup_kind groups) {
  if (!hello.ready)
    return {};
  std::string text =
    "user, pid, mount, ipc, uts and cgroup namespaces, an empty network namespace, "
    "read-only root, seccomp, no_new_privs, no capabilities, rlimits";
  if (groups != cgroup_kind::none)
    text += groups == cgroup_kind::v2 ? ", cgroup v2 limits" : ", cgroup v1 limits";
  text += hello.root ? ", host uids of its own" : ", rootless";
  if ((lacking & lacking_proc) != 0)
    text += ", no /proc";
  return text;
}

std::vector<std::string> missing_layers(const zygote_hello& hello, int lacking,
                                        const cgroup_tree& groups) {
  if (!hello.ready)
    return {"not known before the first sandbox has been opened"};
  std::vector<std::string> missing;
  if (groups.kind() == cgroup_kind::none)
    missing.push_back("cgroup limits: memory, processes and CPU are bounded by rlimits and "
                      "deadlines only ("
                      + groups.why() + ")");
  if (!hello.root)
    missing.emplace_back("a host uid for each sandbox: needs root");
  if ((lacking & lacking_proc) != 0)
    missing.emplace_back("/proc inside: this host masks parts of its own, so the kernel refuses a "
                         "fresh one");
  if ((lacking & lacking_nesting_limit) != 0)
    missing.emplace_back("the limit on nested user namespaces: max_user_namespaces cannot be "
                         "written (seccomp denies them all the same)");
  return missing;
}

constexpr executor_abilities abilities{.isolated = true,
                                       .network_none = true,
                                       .memory_limit = true,
                                       .process_limit = true,
                                       .disk_limit = true,
                                       .checkpoints = true,
                                       .forks = true};

}  // namespace

jail_core::jail_core(reactor& r, std::string zygote_path, std::vector<std::string> preload,
                     std::size_t ready)
  : io{r}, groups{cgroup_tree::none()}, zygote_path_{std::move(zygote_path)},
    preload_{std::move(preload)}, oom_{r}, keep_ready_{ready} {}

void jail_core::start() {
  groups = cgroup_tree::probe();
  if (groups.kind() != cgroup_kind::none) {
    oom_.assign(unique_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)});
    watch_oom();
  }
  std::vector<std::string> arguments;
  for (const auto& module : preload_)
    arguments.push_back("import=" + module);
  zygote = std::make_shared<zygote_client>(io, zygote_path_, std::move(arguments),
                                           [weak = weak_from_this()](const zygote_hello& hello) {
                                             if (auto self = weak.lock()) {
                                               std::lock_guard lock{self->mutex_};
                                               self->hello_ = hello;
                                             }
                                           });
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

// --- sandboxes made ahead
// --------------------------------------------------------------------------

std::shared_ptr<jail_session> jail_core::take(const sandbox_spec& spec) {
  refill_soon(spec);
  while (!ready_.empty()) {
    auto s = std::move(ready_.back());
    ready_.pop_back();
    if (s->ready() && s->fits(spec))
      return s;
    s->close({});
  }
  return std::make_shared<jail_session>(shared_from_this(), spec);
}

/// One at a time, each a moment after the reactor has done something else: whoever waits for a
/// sandbox now comes first.
void jail_core::refill_soon(const sandbox_spec& spec) {
  wanted_.limits = spec.limits;
  wanted_.checkpoints = spec.checkpoints;
  if (keep_ready_ > 0 && !std::exchange(refilling_, true))
    io.in(refill_pause, [weak = weak_from_this()] {
      if (auto self = weak.lock())
        self->refill();
    });
}

void jail_core::refill() {
  refilling_ = false;
  std::erase_if(ready_, [](const auto& s) { return s->gone(); });
  if (closing_ || ready_.size() >= keep_ready_)
    return;
  auto s = std::make_shared<jail_session>(shared_from_this(), wanted_);
  ready_.push_back(s);
  s->prepare_ahead();
  if (!s->gone())
    refill_soon(wanted_);
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
  close_zygote_when_empty();
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

void jail_core::note_lacking(int bits) {
  std::lock_guard lock{mutex_};
  lacking_ |= bits;
}

void jail_core::close(std::function<void()> done) {
  closing_ = true;
  closed_ = std::move(done);
  ready_.clear();
  auto all = sessions_;
  for (const auto& s : all)
    s->close({});
  close_zygote_when_empty();
}

void jail_core::close_zygote_when_empty() {
  if (!closing_ || !sessions_.empty() || !closed_)
    return;
  zygote->close([self = shared_from_this(), done = std::exchange(closed_, nullptr)] {
    self->oom_.close();
    self->groups = cgroup_tree::none();
    done();
  });
}

executor_info jail_core::info() const {
  std::lock_guard lock{mutex_};
  return {"jail", isolation_text(hello_, lacking_, groups.kind()),
          missing_layers(hello_, lacking_, groups), hello_.python, abilities};
}

executor_stats jail_core::stats() const {
  std::lock_guard lock{mutex_};
  return stats_;
}

}  // namespace troupe::jail

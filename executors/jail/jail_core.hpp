#pragma once
// What the sessions of one jail executor share.

#include "executors/channel.hpp"
#include "executors/executor.hpp"
#include "executors/jail/cgroup.hpp"
#include "executors/sandbox_profile.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace troupe::jail {

class jail_session;
class zygote_pool;

/// Owned by the executor and by each live session, so that it outlives the last of them.
/// Reactor's thread only, except `info` and `stats`.
class jail_core : public std::enable_shared_from_this<jail_core> {
public:
  jail_core(reactor& r, std::function<std::uint64_t()> memory_left);

  /// Once, before anything else. `profiles` has one at least.
  void start(const std::string& zygote_path, const std::vector<sandbox_profile>& profiles);

  reactor& io;
  cgroup_tree groups;                           ///< after `start`
  const std::function<std::uint64_t()> memory;  ///< bytes that the machine has left

  [[nodiscard]] std::vector<std::string> profile_names() const;

  /// Null: there is no such profile.
  [[nodiscard]] std::shared_ptr<zygote_pool> pool(const std::string& profile) const;

  /// Becomes readable when some group has run out of memory; -1 where there are no groups.
  [[nodiscard]] int oom_event() const noexcept { return oom_.fd(); }

  void opening(std::shared_ptr<jail_session> s);
  void opened(micros took);
  void open_failed();
  /// The session is over: its slot is free again.
  void ended(const std::shared_ptr<jail_session>& s, bool was_open, const close_report& report);

  /// A number that no other live session has: its host uids come from it.
  unsigned take_slot();
  void free_slot(unsigned slot);

  /// Closes all sessions, then the zygotes, then calls `done`.
  void close(std::function<void()> done);
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  /// Of the first profile.
  [[nodiscard]] executor_info info() const;
  [[nodiscard]] executor_stats stats() const;

private:
  void watch_oom();
  void close_zygotes_when_empty();

  channel oom_;
  std::vector<std::shared_ptr<zygote_pool>> pools_;
  std::set<std::shared_ptr<jail_session>> sessions_;
  std::vector<bool> slots_;
  bool closing_ = false;
  std::function<void()> closed_;

  mutable std::mutex mutex_;
  executor_stats stats_;  ///< guarded by mutex_
};

}  // namespace troupe::jail

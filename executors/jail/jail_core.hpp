#pragma once
// What the sessions of one jail executor share.

#include "executors/channel.hpp"
#include "executors/executor.hpp"
#include "executors/jail/cgroup.hpp"
#include "executors/jail/zygote_client.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace troupe::jail {

class jail_session;

/// Owned by the executor and by each live session, so that it outlives the last of them.
/// Reactor's thread only, except `info` and `stats`.
class jail_core : public std::enable_shared_from_this<jail_core> {
public:
  /// Keeps `ready` sandboxes of the kind last opened, made ahead while the reactor is idle.
  jail_core(reactor& io, std::string zygote_path, std::vector<std::string> preload,
            std::size_t ready);

  void start();  ///< once, before anything else

  reactor& io;
  std::shared_ptr<zygote_client> zygote;
  cgroup_tree groups;  ///< after `start`

  /// Becomes readable when some group has run out of memory; -1 where there are no groups.
  [[nodiscard]] int oom_event() const noexcept { return oom_.fd(); }

  void opening(std::shared_ptr<jail_session> s);
  void opened(micros took);
  void open_failed();
  /// The session is over: its slot is free again.
  void ended(const std::shared_ptr<jail_session>& s, bool was_open, const close_report& report);

  /// A sandbox made ahead that fits, else a new one.
  [[nodiscard]] std::shared_ptr<jail_session> take(const sandbox_spec& spec);

  /// A number that no other live session has: its host uids come from it.
  unsigned take_slot();
  void free_slot(unsigned slot);

  /// Set-up steps that a sandbox had to do without (lacking_* bits).
  void note_lacking(int bits);

  /// Closes all sessions, then the zygote, then calls `done`.
  void close(std::function<void()> done);
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  [[nodiscard]] executor_info info() const;
  [[nodiscard]] executor_stats stats() const;

private:
  void watch_oom();
  void refill_soon(const sandbox_spec& spec);
  void refill();
  void close_zygote_when_empty();

  std::string zygote_path_;
  std::vector<std::string> preload_;
  channel oom_;
  std::set<std::shared_ptr<jail_session>> sessions_;
  std::size_t keep_ready_;
  std::vector<std::shared_ptr<jail_session>> ready_;
  sandbox_spec wanted_;  ///< without tools, files and rules
  bool refilling_ = false;
  std::vector<bool> slots_;
  bool closing_ = false;
  std::function<void()> closed_;

  mutable std::mutex mutex_;
  zygote_hello hello_;  ///< guarded by mutex_, like the next two
  int lacking_ = 0;
  executor_stats stats_;
};

}  // namespace troupe::jail

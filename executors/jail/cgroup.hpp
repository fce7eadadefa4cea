#pragma once
// Limits on a whole sandbox by the kernel's control groups. Which kind a machine offers is probed;
// the rest of the jail sees one interface.
//
// On a hybrid machine (version 1 hierarchies beside an almost empty version 2) the limits come from
// version 1 and the atomic kill from version 2. Where version 2 has the controllers, all comes from
// there. A plain user without delegation has neither.

#include "executors/unique_fd.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace troupe::jail {

struct cgroup_limits {
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
  double cpus = 0;  ///< cores' worth of time; 0: no limit

  friend bool operator==(const cgroup_limits&, const cgroup_limits&) = default;
};

/// Where a first process enters its groups. `tasks`: files to which it writes "0" itself, which
/// costs 0.04 ms where a foreign pid in cgroup.procs costs 5 to 16. `into`: for CLONE_INTO_CGROUP.
struct cgroup_entry {
  std::vector<unique_fd> tasks;
  unique_fd into;
};

struct cgroup_layout;

/// The groups of one sandbox. Holds no descriptor. Removed with `remove`, else by the next sweep.
class cgroup {
public:
  cgroup(std::shared_ptr<const cgroup_layout> layout, std::string name);

  /// Errors  unavailable: a directory or a file in it cannot be made or written.
  [[nodiscard]] result<void> create(const cgroup_limits& limits);

  /// For the next sandbox: counts time and memory from zero. False when it is not empty, or holds
  /// on to memory, or has counts that cannot be set back: then it can only be removed.
  [[nodiscard]] bool renew() const;

  [[nodiscard]] result<cgroup_entry> entry() const;

  /// Lets `eventfd` (of eventfd(2)) tell of each out-of-memory event. False where the kernel ends
  /// the whole group by itself.
  bool notify_oom(int eventfd) const;

  /// SIGKILL to all in it, at once. False where that cannot be done.
  bool kill() const;

  // Of all processes in the group, those that have ended too.
  [[nodiscard]] micros cpu() const;
  [[nodiscard]] std::uint64_t peak_memory_bytes() const;
  [[nodiscard]] std::uint64_t oom_kills() const;

  /// Makes the peak count anew, from what is in use now.
  void reset_peak() const;

  /// False while a process is in it. True also when it is gone already.
  [[nodiscard]] bool remove();

private:
  [[nodiscard]] bool is_left() const;

  std::shared_ptr<const cgroup_layout> layout_;
  std::string name_;
};

enum class cgroup_kind : std::uint8_t { none, hybrid, v2 };

/// Paths by which the kernel's files are found; tests give others.
struct cgroup_paths {
  std::string mounts = "/proc/self/mountinfo";
  std::string membership = "/proc/self/cgroup";
};

/// The place for one executor's groups, below this process's own. Thread-safe after `probe`.
class cgroup_tree {
public:
  /// Never fails: where nothing can be had the kind is none and `why` says what is missing. Makes a
  /// directory of its own in each hierarchy, and removes those of runtimes that have died.
  static cgroup_tree probe(const cgroup_paths& paths = {});

  static cgroup_tree none() { return {}; }

  cgroup_tree(cgroup_tree&&) noexcept;
  cgroup_tree& operator=(cgroup_tree&&) noexcept;
  ~cgroup_tree();  ///< removes its own directories

  [[nodiscard]] cgroup_kind kind() const noexcept;
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  /// A group that does not exist yet. Not for kind none.
  [[nodiscard]] std::unique_ptr<cgroup> make();

  /// One with these limits that was given back. Null: there is none.
  [[nodiscard]] std::unique_ptr<cgroup> take_spare(const cgroup_limits& limits);

  /// Removes it, or keeps it for the next sandbox with these limits: to make and remove groups
  /// costs more than all else that the runtime does for a sandbox. False while a process is in it:
  /// it is still the caller's.
  [[nodiscard]] bool give_back(std::unique_ptr<cgroup>& group, const cgroup_limits& limits);

private:
  cgroup_tree() = default;

  struct spare {
    cgroup_limits limits;
    std::unique_ptr<cgroup> group;
  };

  std::shared_ptr<const cgroup_layout> layout_;
  std::string why_;
  std::uint64_t last_ = 0;
  std::deque<spare> spares_;  ///< the oldest first
};

/// A directory of a runtime that no longer lives.
struct cgroup_leftover {
  std::string path;
  bool empty = false;  ///< no process in it: may be removed
};

[[nodiscard]] std::vector<cgroup_leftover> find_cgroup_leftovers(const cgroup_paths& paths = {});

/// Removes those that are empty; the number removed.
std::size_t sweep_cgroups(const std::vector<cgroup_leftover>& all);

}  // namespace troupe::jail

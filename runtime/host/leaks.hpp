#pragma once
// What runs that were killed have left on this machine.

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe {

struct leak {
  std::string what;       ///< for a person: "control group /sys/...", "sandbox process 4711"
  std::string directory;  ///< of a control group; empty for a process
  pid_t process = 0;
  bool removable = false;  ///< nothing lives in it, and it is ours to remove
};

/// Control groups of runtimes that no longer live, and sandboxes whose runtime has gone: a sandbox
/// ends with its runtime, so one that has init as its parent is a fault.
[[nodiscard]] std::vector<leak> find_leaks();

/// False when something of it is still there.
[[nodiscard]] bool remove_leak(const leak& one);

}  // namespace troupe

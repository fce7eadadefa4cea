#pragma once
// Starting a keeper, with nothing of ours but the descriptors it needs.

#include "executors/control_channel.hpp"
#include "runtime/core/error.hpp"

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::process {

/// Our child, just started. Its pidfd is missing when no descriptor was free for it.
struct kept {
  pid_t pid = 0;
  unique_fd pidfd;
};

struct keeper_program {
  std::string path;       ///< of troupe-keeper
  std::string directory;  ///< the sandbox's own
};

/// A keeper for the worker `argv`, in a session of its own, with a fixed environment. Its 0 is
/// /dev/null, the channels' output its 1 and 2. Waits until the kernel has replaced the program, as
/// posix_spawn does: less than a millisecond.
/// Errors  unavailable: what cannot be started, and the system's words.
[[nodiscard]] result<kept> spawn_keeper(const keeper_program& program,
                                        const std::vector<std::string>& argv,
                                        const sandbox_ends& channels, int source);

/// A keeper that sweeps up after one that was killed. `session` is its worker's pid, or 0.
[[nodiscard]] result<kept> spawn_sweeper(const keeper_program& program, pid_t session);

}  // namespace troupe::process

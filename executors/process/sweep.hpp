#pragma once
// Ending processes that are not our children, and removing what they wrote.

#include <string>

#include <sys/types.h>

namespace troupe::process {

/// Kills all descendants of the caller, which must be their subreaper and block SIGCHLD. `leader`
/// is a child whose process group goes first, 0 for none. Blocks, for at most 5 s.
/// False when some process is left, e.g. one that now belongs to another user.
[[nodiscard]] bool end_descendants(pid_t leader);

/// Kills the processes of a session, and those whose environment names the directory. Blocks, for
/// at most 5 s. False when some are left.
[[nodiscard]] bool end_session(pid_t session, const std::string& directory);

/// Removes a directory with all that is in it, whatever the modes. Follows no link, leaves the
/// file system never. Nobody may change it at the same time. False when something is left.
[[nodiscard]] bool remove_tree(const std::string& directory);

}  // namespace troupe::process

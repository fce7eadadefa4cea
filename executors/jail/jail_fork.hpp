#pragma once
// fork() of a live session, as the runtime sees it: opens a sandbox for each branch, and has the
// workers move the session through a pipe. What goes through it is never read here.

#include "executors/jail/jail_session.hpp"
#include "executors/jail/zygote_pool.hpp"

#include <memory>
#include <vector>

namespace troupe::jail {

/// As sandbox::fork. `source` is open and does nothing else. Reactor's thread only.
void fork_session(std::shared_ptr<zygote_pool> pool, std::shared_ptr<jail_session> source,
                  const std::vector<sandbox_limits>& branches, sandbox::forked_fn done);

}  // namespace troupe::jail

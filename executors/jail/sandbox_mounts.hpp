#pragma once
// What each sandbox mounts on top of its root.

#include "executors/jail/wire.hpp"

namespace troupe::jail {

/// Fresh /tmp, /work and /proc. Returns lacking_* bits. Throws setup_error.
int mount_sandbox(const spawn_request& request);

}  // namespace troupe::jail

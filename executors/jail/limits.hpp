#pragma once
// Resource limits of the worker.

#include "executors/jail/wire.hpp"

namespace troupe::jail {

/// Sets the calling process's rlimits, soft and hard; none on processes when `processes` is 0.
/// Throws setup_error.
void set_limits(const spawn_request& request);

}  // namespace troupe::jail

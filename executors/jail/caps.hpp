#pragma once
// Capabilities and user ids: who keeps what.

#include "executors/jail/namespaces.hpp"

namespace troupe::jail {

/// The zygote, once its namespaces and root stand: only what maps user ids. Throws setup_error.
void reduce_zygote(privilege mode);

/// A sandbox's init: takes its user id. All capabilities stay, for the mounts. Throws setup_error.
void become_init(privilege mode);

/// Init, once the sandbox is set up: only what interrupts a worker of another user id. Not
/// dumpable, no new privileges. Throws setup_error.
void reduce_init(privilege mode);

/// The worker: its user id, no capability in any set, none to be had again. Throws setup_error.
void become_worker(privilege mode);

}  // namespace troupe::jail

#pragma once
// The file system: a read-only template that the zygote builds once, and what each sandbox mounts
// on top of it.

#include "executors/jail/wire.hpp"

namespace troupe::jail {

/// Builds the template root, makes it the caller's root and lets go of the old one. Afterwards
/// nothing of the host but the bound trees can be reached. Throws setup_error.
void enter_template_root();

/// In a sandbox: fresh /tmp, /work and /proc. Returns lacking_* bits. Throws setup_error.
int mount_sandbox(const spawn_request& request);

}  // namespace troupe::jail

#pragma once
// A second list of what may be done to files, beside the mounts: should one of them be wrong.

#include <cstdint>

namespace troupe::jail {

/// The version that the kernel speaks; 0 when it has none.
[[nodiscard]] int landlock_version() noexcept;

/// Binds the calling process and its descendants for good: files may be read and run, written below
/// /work and /tmp alone; TCP goes to `port` alone (0: nowhere); signals and abstract sockets stay
/// among them. Of these what the kernel's version knows. Needs no_new_privs. Throws setup_error.
void enter_landlock(std::uint16_t port);

}  // namespace troupe::jail

#pragma once
// The namespaces of the zygote and of each sandbox, and the maps of user ids.

#include "executors/jail/wire.hpp"

#include <sys/types.h>

namespace troupe::jail {

/// Root has a host uid to give to each sandbox; a plain user has only its own.
enum class privilege { root, rootless };

constexpr const char* mode_text(privilege mode) noexcept {
  return mode == privilege::root ? "root" : "rootless";
}

/// User ids inside a sandbox.
inline constexpr unsigned init_id = 0;
inline constexpr unsigned worker_id = 1000;

/// Moves the calling process into its own mount, network, UTS and IPC namespaces; a plain user into
/// a user namespace first. Throws setup_error: the kernel does not allow it.
privilege enter_zygote_namespaces();

/// A new process in its own user, pid, mount, IPC, UTS and cgroup namespaces, and a network
/// namespace if asked for, child of the *zygote's parent*, in the control group of the directory
/// `group` unless that is -1. Returns like fork; in the zygote `pidfd` and `birth.pid` are set. -1
/// with errno on failure.
pid_t clone_sandbox(int& pidfd, birth_record& birth, int group, bool network);

/// Throws setup_error for the errno of a clone or unshare that has failed, with the mend.
[[noreturn]] void give_up_namespaces();

/// Gives the new process its user ids. Throws setup_error.
void write_id_maps(pid_t pid, privilege mode, const spawn_request& request);

}  // namespace troupe::jail

#pragma once
// A sandbox's first process: sets the sandbox up, forks the worker, then only reaps, forwards
// interrupts, and ends with its control socket. C only: Python runs in the worker.

#include "executors/jail/namespaces.hpp"
#include "executors/jail/seccomp.hpp"
#include "executors/jail/sys.hpp"

#include <array>

namespace troupe::jail {

/// What a new sandbox gets from the zygote.
struct sandbox_parts {
  spawn_request request;
  privilege mode = privilege::rootless;
  const seccomp_filter* filter = nullptr;
  unique_fd start;                            ///< readable once the user ids are mapped
  unique_fd data;                             ///< worker: frames
  unique_fd control;                          ///< init: orders and notes
  unique_fd output;                           ///< worker: stdout and stderr
  unique_fd saved;                            ///< worker: to init, about checkpoints and branches
  std::array<unique_fd, max_task_fds> tasks;  ///< of version 1 control groups; some may be empty
  unique_fd group;                            ///< of a version 2 control group
};

/// Runs a sandbox in the process that clone_sandbox made. Never returns.
[[noreturn]] void run_init(sandbox_parts parts) noexcept;

}  // namespace troupe::jail

#pragma once
// Checkpoints of a worker: a fork of it that waits, frozen, in case the snippet to come kills the
// worker. The worker's side is a Python module; init's side finds out who is to live on.

#include "executors/jail/sys.hpp"

#include <sys/types.h>

namespace troupe::jail {

/// Descriptor of the worker's end of the socket to init: about checkpoints, and pipes for branches.
inline constexpr int saved_fd = 4;

/// The worker to init: `pid` is the checkpoint; a message.
struct saved_note {
  pid_t pid = 0;
};

/// Init to a checkpoint: answer with a saved_note, if you live.
inline constexpr char call_order = 'C';

/// The descriptor that comes with the next `wanted` order of the runtime, which init passes on;
/// those of other orders are closed, and calls answered. Waits. -1 with errno when none will come.
[[nodiscard]] int receive_order(char wanted);

/// Makes `import _troupe` work: checkpoints, and what fork() needs. False with a Python error set.
[[nodiscard]] bool add_checkpoint_module();

/// A view of the pid namespace's processes that hides none. Empty where the kernel refuses one.
[[nodiscard]] unique_fd open_process_list();

/// Ends all processes of the pid namespace but the caller, its first, and `kept`. False when some
/// still live after 2 s, or `kept` does not.
bool end_all_but(int process_list, pid_t kept);

/// Whether the checkpoint, alone in the sandbox, answers over init's end of the socket: one that
/// was killed a moment ago is still to be seen, and takes signals.
bool answers_call(int saved, pid_t checkpoint);

}  // namespace troupe::jail

#pragma once
// Moves a worker's memory into the worker of another sandbox: one writes its image into a pipe, the
// other takes it over and goes on as the first. Both are forks of one zygote, so that code, stack
// and kernel's own mappings are at the same addresses. No privilege is needed, and none helps.

#include "executors/jail/memory_map.hpp"

#include <array>
#include <cstdint>
#include <span>

#include <signal.h>
#include <sys/types.h>
#include <ucontext.h>

namespace troupe::jail {

// --- what goes through the pipe
// ----------------------------------------------------------------------------------

/// First; then `mappings` of mapping, `path_bytes` of paths, and the runs.
struct image_header {
  std::uint64_t heap_end = 0;
  std::uint32_t mappings = 0;
  std::uint32_t path_bytes = 0;
};

/// Comes before its bytes. Ascending; what is in none of them, in a mapping with own_pages, is as
/// the mapping was made. An empty one is the last.
using page_run = address_range;

// --- what the process keeps outside its memory
// ------------------------------------------------------------

/// Part of the image itself, except for what the new process fills in once the image is there.
struct carried_state {
  ucontext_t context;
  std::array<struct sigaction, NSIG> actions;
  stack_t signal_stack;

  // Filled in by the new process.
  volatile bool moved;
  std::uint32_t request;      ///< whom the host waits for
  std::uint32_t frame_bytes;  ///< the new sandbox's limit
  void* scratch;
  std::size_t scratch_bytes;
};

extern carried_state carried;

/// In the zygote, once: learns what the image of its forks needs. False where the kernel does not
/// tell.
bool prepare_images();

/// Before an image is written: fills in `carried`. Returns 0 or an errno.
[[nodiscard]] int carry_state();

/// In the new process, first thing: makes the kernel's and libc's state fit the memory.
void settle_in();

/// Writes the image of the calling process, its only thread, which must not go on from it
/// differently: a fork made for that. Returns 0 or an errno.
[[nodiscard]] int write_image(int pipe);

/// What the host is told, on `answer_fd`, when the memory cannot be taken over and all that could
/// speak is gone.
struct last_words {
  int answer_fd = -1;
  std::span<const char> no_memory;
  std::span<const char> broken;
};

/// Takes the image over. Returns only on failure, with an errno, before anything has changed:
/// ENODATA the image ends early, EXDEV it is of another zygote.
[[nodiscard]] int take_over(int pipe, std::uint32_t request, std::uint32_t frame_bytes,
                            const last_words& words);

}  // namespace troupe::jail

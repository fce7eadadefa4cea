#pragma once
// What a worker needs while it changes from its own memory to another's, and the change of the
// mappings. Runs on the scratch's stack: no memory is taken, and no state of libc relied upon.

#include "executors/jail/memory_map.hpp"

namespace troupe::jail {

inline constexpr std::size_t stack_bytes = 64u << 10;
inline constexpr std::size_t bounce_bytes = 64u << 10;
inline constexpr std::size_t max_words = 512;

struct words {
  std::size_t bytes;
  char text[max_words];
};

/// All that the change from one memory to the other needs, in a mapping that is in neither: from
/// its first step on there is no other memory to be relied upon.
struct scratch {
  int pipe;
  int answer_fd;
  std::uint32_t request;
  std::uint32_t frame_bytes;
  words no_memory;
  words broken;
  std::uint64_t heap_end;
  map_list theirs;
  map_list ours;
  address_range fresh[max_mappings];  ///< what was mapped for them: nothing is in it yet
  std::uint32_t fresh_count;
  std::uint32_t at;        ///< of theirs: where the runs are
  std::uint64_t received;  ///< ... and how far in it
  std::uint32_t fresh_at;
  alignas(64) char bounce[bounce_bytes];
  alignas(64) char stack[stack_bytes];
};

// Each returns false with errno on failure, which is then past mending. In this order:

/// The kernel shrinks a heap only while all of it is mapped.
[[nodiscard]] bool set_heap_end(const scratch& s);

/// Unmaps what they do not have.
[[nodiscard]] bool unmap_ours(scratch& s);

/// Maps what they have and we do not.
[[nodiscard]] bool map_theirs(scratch& s);

/// Makes all as they have it, but for what is yet to be filled: that can be written.
[[nodiscard]] bool protect_for_filling(scratch& s);

[[nodiscard]] bool protect_filled(scratch& s);

/// False for the kernel's own mappings.
[[nodiscard]] inline bool is_movable(const mapping& m) noexcept {
  return m.kind != backing::kernel;
}

}  // namespace troupe::jail

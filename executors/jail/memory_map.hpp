#pragma once
// A process's mappings, as the kernel lists them. Nothing here takes memory: a list is read while
// what it describes must not change.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::jail {

inline constexpr std::size_t page_bytes = 4'096;
inline constexpr std::uint32_t max_mappings = 8'192;
inline constexpr std::uint32_t max_path_bytes = 256u << 10;

struct address_range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool empty() const noexcept { return start >= end; }
};

[[nodiscard]] constexpr bool overlap(address_range a, address_range b) noexcept {
  return a.start < b.end && b.start < a.end;
}

/// What the kernel's lists say is there.
[[nodiscard]] inline void* pointer(std::uint64_t address) noexcept {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

[[nodiscard]] constexpr std::size_t length(address_range r) noexcept {
  return r.end - r.start;
}

enum class backing : std::uint8_t { anonymous, file, stack, kernel };

struct mapping {
  address_range at;
  std::uint64_t offset = 0;  ///< in the file, like the next three
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint32_t path = 0;  ///< where it begins in map_list::paths
  std::int32_t protection = 0;
  backing kind = backing::anonymous;
  bool shared = false;
  bool own_pages = false;  ///< some of it is neither zero nor what the file says; only from smaps
  bool complete = false;   ///< what mincore says of it is not to be trusted: count all as present
};

/// Large: lives in a mapping of its own.
struct map_list {
  std::uint32_t count;
  std::uint32_t path_bytes;
  mapping all[max_mappings];
  char paths[max_path_bytes];  ///< each ends with a NUL

  [[nodiscard]] const char* path_of(const mapping& m) const noexcept { return paths + m.path; }
};

[[nodiscard]] inline std::span<mapping> all_of(map_list& list) noexcept {
  return {list.all, list.count};
}

/// Reads "/proc/self/maps", or "/proc/self/smaps" to know own_pages too. Returns 0 or an errno;
/// E2BIG when there are too many.
[[nodiscard]] int read_maps(const char* file, map_list& out);

/// Maps `bytes` where neither this process has anything nor `theirs` (may be null), far from all
/// that grows, so that it merges with no other mapping. Null with errno on failure.
[[nodiscard]] void* map_apart(std::size_t bytes, const map_list* theirs);

}  // namespace troupe::jail

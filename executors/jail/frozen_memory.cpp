#include "executors/jail/frozen_memory.hpp"

#include "executors/jail/sys.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

// --- the region
// -------------------------------------------------------------------------------------

constexpr std::size_t region_bytes = 256u << 20;  // what does not fit lies elsewhere, as usual
constexpr std::size_t least_arena_bytes = 256u << 10;

address_range region;     ///< of objects
address_range unused;     ///< its end
std::uint64_t inode = 0;  ///< of the file; 0 while there is none
std::uint64_t device = 0;

/// CPython's PyObjectArenaAllocator, which is not part of the limited API.
/// Source  Python/C API Reference Manual, "Customize pymalloc Arena Allocator".
struct arena_allocator {
  void* context;
  void* (*allocate)(void* context, std::size_t bytes);
  void (*release)(void* context, void* at, std::size_t bytes);
};

/// Arenas of the region that Python has given back. They stay mapped: a sandbox that another one
/// moves into must have each part of the file that the other has, and nobody can open it again.
struct spare_arena {
  void* at = nullptr;
  std::size_t bytes = 0;
};
std::array<spare_arena, region_bytes / least_arena_bytes> spare{};
std::size_t spare_count = 0;

void* take_spare(std::size_t bytes) {
  for (auto i = spare_count; i-- > 0;)
    if (spare[i].bytes == bytes) {
      auto* at = spare[i].at;
      spare[i] = spare[--spare_count];
      return at;
    }
  return nullptr;
}

void* allocate_arena(void*, std::size_t bytes) {
  if (auto* at = take_spare(bytes))
    return at;
  if (bytes % page_bytes == 0 && bytes <= length(unused)
      && ::mprotect(pointer(unused.start), bytes, PROT_READ | PROT_WRITE) == 0) {
    unused.start += bytes;
    return pointer(unused.start - bytes);
  }
  auto* made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made != MAP_FAILED ? made : nullptr;
}

void release_arena(void*, void* at, std::size_t bytes) {
  auto start = reinterpret_cast<std::uint64_t>(at);
  if (!overlap({start, start + bytes}, region) || spare_count == spare.size()) {
    ::munmap(at, bytes);
    return;
  }
  ::madvise(at, bytes, MADV_DONTNEED);
  spare[spare_count++] = {at, bytes};
}

// --- the file
// ---------------------------------------------------------------------------------------

constexpr std::size_t worth_a_mapping = 64u << 10;  // what is written to is copied by each fork
constexpr std::size_t worth_a_copy = 1u << 20;
constexpr std::size_t too_large = 8u << 20;
constexpr std::uint64_t large_page = 2u << 20;

/// Code and constants of the programs: on disk their pages are small ones.
bool is_read_only_part(const mapping& m) {
  return m.kind == backing::file && (m.protection & PROT_READ) != 0
         && (m.protection & PROT_WRITE) == 0 && length(m.at) >= worth_a_copy
         && length(m.at) <= too_large;
}

/// Of anonymous memory nothing else may be moved: some allocators rely on what the kernel says of
/// it, that MADV_DONTNEED empties it and mremap lengthens it.
bool is_writable_part(const map_list& maps, const mapping& m) {
  return m.protection == (PROT_READ | PROT_WRITE) && length(m.at) >= worth_a_mapping
         && (m.kind == backing::file || overlap(m.at, region)
             || std::string_view{maps.path_of(m)} == "[heap]");
}

bool can_be_frozen(const map_list& maps, const mapping& m) {
  return !m.shared && (is_read_only_part(m) || is_writable_part(maps, m));
}

/// A large page that fits as a whole would be mapped as a whole, and taken apart at the first
/// write.
std::uint64_t misaligned(std::uint64_t offset, std::uint64_t address) {
  return (address - offset) % large_page == 0 ? offset + page_bytes : offset;
}

bool write_out(int file, const mapping& m) {
  for (std::size_t done = 0; done < length(m.at);) {
    auto size = ::pwrite(file, pointer(m.at.start + done), length(m.at) - done,
                         static_cast<off_t>(m.offset + done));
    if (size <= 0)
      return false;
    done += static_cast<std::size_t>(size);
  }
  return true;
}

/// What is mapped must not change between the two steps: nothing here allocates. What there is no
/// room for stays where it is.
void move_into_file(std::span<const mapping> all, int to_write, int to_map) {
  for (const auto& m : all) {
    if (!write_out(to_write, m))
      continue;
    auto* made = ::mmap(pointer(m.at.start), length(m.at), m.protection, MAP_PRIVATE | MAP_FIXED,
                        to_map, static_cast<off_t>(m.offset));
    must(made == pointer(m.at.start), "map the zygote's memory");
  }
}

/// The kernel may have joined the region with what lies beside it.
address_range own_part(const mapping& m) {
  if (!overlap(m.at, region))
    return m.at;
  return {std::max(m.at.start, region.start), std::min(m.at.end, region.end)};
}

/// Leaves in `maps` what is to be moved, with its place in the file.
void choose(map_list& maps) {
  auto* end = std::remove_if(maps.all, maps.all + maps.count,
                             [&](const mapping& m) { return !can_be_frozen(maps, m); });
  maps.count = static_cast<std::uint32_t>(end - maps.all);
  std::uint64_t offset = 0;
  for (auto& m : all_of(maps)) {
    m.at = own_part(m);
    m.offset = misaligned(offset, m.at.start);
    offset = m.offset + length(m.at);
  }
}

/// As the kernel's lists have it.
void remember_file(int file) {
  struct stat info {};
  must(::fstat(file, &info) == 0, "look at the memory file");
  inode = info.st_ino;
  device = std::uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev);
}

/// malloc gives the end of the heap back when it is free, unless somebody else has moved that end:
/// see spare_arena for why no part may go.
void keep_heap() {
  ::sbrk(page_bytes);
}

void close_region() {
  if (unused.empty())
    return;
  ::munmap(pointer(unused.start), length(unused));
  region.end = unused.start;
  unused = {};
}

}  // namespace

void gather_objects() {
  using set_allocator = void (*)(arena_allocator*);
  auto set = reinterpret_cast<set_allocator>(::dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator"));
  auto* made = ::mmap(nullptr, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (set == nullptr || made == MAP_FAILED)
    return;
  region.start = reinterpret_cast<std::uint64_t>(made);
  region.end = region.start + region_bytes;
  unused = region;
  arena_allocator ours{nullptr, allocate_arena, release_arena};
  set(&ours);
}

void freeze_memory(int store) {
  close_region();
  keep_heap();
  constexpr const char* name = "memory";
  unique_fd to_write{::openat(store, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0400)};
  unique_fd to_map{::openat(store, name, O_RDONLY | O_CLOEXEC)};
  if (!to_write || !to_map)
    return;
  must(::unlinkat(store, name, 0) == 0, "take the memory file's name away");
  auto* maps = static_cast<map_list*>(map_apart(sizeof(map_list), nullptr));
  must(maps != nullptr && read_maps("/proc/self/maps", *maps) == 0, "read the zygote's mappings");
  choose(*maps);
  remember_file(to_map.get());
  move_into_file(all_of(*maps), to_write.get(), to_map.get());
  ::munmap(maps, sizeof(map_list));
}

bool is_frozen(const mapping& m) noexcept {
  return m.kind == backing::file && inode != 0 && m.inode == inode && m.device == device;
}

}  // namespace troupe::jail

#include "executors/jail/image_layout.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// True when the same bytes would be behind both, before anybody wrote to them.
bool alike(const mapping& a, const mapping& b) {
  if (a.kind != b.kind || a.shared != b.shared)
    return false;
  return a.kind != backing::file
         || (a.device == b.device && a.inode == b.inode
             && a.at.start - a.offset == b.at.start - b.offset);
}

/// Calls `fn` with each part of `m` that no mapping of `list` is alike to. False when it is.
template <class Fn>
bool for_uncovered(const mapping& m, map_list& list, Fn fn) {
  auto from = m.at.start;
  for (const auto& other : all_of(list)) {
    if (other.at.end <= from || !alike(m, other))
      continue;
    if (other.at.start >= m.at.end)
      break;
    if (other.at.start > from && !fn(address_range{from, other.at.start}))
      return false;
    from = std::max(from, other.at.end);
  }
  return from >= m.at.end || fn(address_range{from, m.at.end});
}

int protection_while_filled(const mapping& m) {
  return m.own_pages ? m.protection | PROT_READ | PROT_WRITE : m.protection;
}

bool map_file(const map_list& theirs, const mapping& m, address_range r) {
  auto fd = ::open(theirs.path_of(m), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  auto flags = (m.shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED;
  auto offset = static_cast<off_t>(m.offset + (r.start - m.at.start));
  auto* made = ::mmap(pointer(r.start), length(r), protection_while_filled(m), flags, fd, offset);
  ::close(fd);
  return made != MAP_FAILED;
}

bool map_one(const map_list& theirs, const mapping& m, address_range r) {
  if (m.kind == backing::file)
    return map_file(theirs, m, r);
  if (m.kind == backing::stack) {  // it grows down to where it is touched
    *static_cast<volatile char*>(pointer(r.start)) = 0;
    return true;
  }
  return ::mmap(pointer(r.start), length(r), protection_while_filled(m),
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
         != MAP_FAILED;
}

}  // namespace

bool set_heap_end(const scratch& s) {
  auto got = static_cast<std::uint64_t>(::syscall(SYS_brk, s.heap_end));
  if (got != s.heap_end)
    errno = ENOMEM;
  return got == s.heap_end;
}

bool unmap_ours(scratch& s) {
  return std::ranges::all_of(all_of(s.ours), [&](const mapping& m) {
    return !is_movable(m) || m.kind == backing::stack
           || for_uncovered(m, s.theirs, [](address_range r) {
                return ::munmap(pointer(r.start), length(r)) == 0;
              });
  });
}

bool map_theirs(scratch& s) {
  return std::ranges::all_of(all_of(s.theirs), [&](const mapping& m) {
    return !is_movable(m) || for_uncovered(m, s.ours, [&](address_range r) {
      if (s.fresh_count == max_mappings) {
        errno = E2BIG;
        return false;
      }
      s.fresh[s.fresh_count++] = r;
      return map_one(s.theirs, m, r);
    });
  });
}

bool protect_for_filling(scratch& s) {
  return std::ranges::all_of(all_of(s.theirs), [](const mapping& m) {
    return !is_movable(m)
           || ::mprotect(pointer(m.at.start), length(m.at), protection_while_filled(m)) == 0;
  });
}

bool protect_filled(scratch& s) {
  return std::ranges::all_of(all_of(s.theirs), [](const mapping& m) {
    return !is_movable(m) || protection_while_filled(m) == m.protection
           || ::mprotect(pointer(m.at.start), length(m.at), m.protection) == 0;
  });
}

}  // namespace troupe::jail

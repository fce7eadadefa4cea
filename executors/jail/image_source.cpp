#include "executors/jail/frozen_memory.hpp"
#include "executors/jail/memory_image.hpp"
#include "executors/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>

#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace troupe::jail {

carried_state carried;

namespace {

/// Where libc keeps the number of the main thread, the same in all forks.
pid_t* thread_id = nullptr;

constexpr std::size_t pages_at_once = 32'768;

/// Not part of the image.
struct workspace {
  map_list maps;
  unsigned char present[pages_at_once];
  char zeros[page_bytes];
};

// --- writing
// ----------------------------------------------------------------------------------------

int write_all(int pipe, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    auto size = ::write(pipe, at, bytes);
    if (size < 0 && errno != EINTR)
      return errno;
    if (size > 0) {
      at += size;
      bytes -= static_cast<std::size_t>(size);
    }
  }
  return 0;
}

/// A mapping may be longer than its file: there is nothing in the pages behind.
int write_memory(int pipe, address_range r, const workspace& w) {
  while (!r.empty()) {
    auto size = ::write(pipe, pointer(r.start), length(r));
    if (size > 0) {
      r.start += static_cast<std::uint64_t>(size);
    } else if (size < 0 && errno == EFAULT) {
      auto rest = page_bytes - r.start % page_bytes;
      if (auto failed = write_all(pipe, w.zeros, rest); failed != 0)
        return failed;
      r.start += rest;
    } else if (size < 0 && errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int write_run(int pipe, page_run r, const workspace& w) {
  auto failed = write_all(pipe, &r, sizeof r);
  return failed != 0 ? failed : write_memory(pipe, r, w);
}

/// The pages of `part` that are there, at most pages_at_once of them.
int write_part(int pipe, address_range part, bool complete, workspace& w) {
  auto pages = length(part) / page_bytes;
  if (complete)
    std::memset(w.present, 1, pages);
  else if (::mincore(pointer(part.start), length(part), w.present) != 0)
    return errno;
  auto is_present = [](unsigned char c) { return (c & 1) != 0; };
  auto* end = w.present + pages;
  for (auto* from = w.present; (from = std::find_if(from, end, is_present)) != end;) {
    auto* to = std::find_if_not(from, end, is_present);
    auto address = [&](const unsigned char* p) {
      return part.start + static_cast<std::uint64_t>(p - w.present) * page_bytes;
    };
    if (auto failed = write_run(pipe, {address(from), address(to)}, w); failed != 0)
      return failed;
    from = to;
  }
  return 0;
}

int write_mapping(int pipe, const mapping& m, workspace& w) {
  if ((m.protection & PROT_READ) == 0
      && ::mprotect(pointer(m.at.start), length(m.at), m.protection | PROT_READ) != 0)
    return errno;
  constexpr auto most = pages_at_once * page_bytes;
  for (auto at = m.at.start; at < m.at.end; at += most)
    if (auto failed = write_part(pipe, {at, std::min(at + most, m.at.end)}, m.complete, w);
        failed != 0)
      return failed;
  return 0;
}

// --- the list
// ---------------------------------------------------------------------------------------

/// The workspace is not of the image.
void remove_workspace(workspace& w) {
  auto at = reinterpret_cast<std::uint64_t>(&w);
  auto* end = std::remove_if(w.maps.all, w.maps.all + w.maps.count, [at](const mapping& m) {
    return overlap(m.at, {at, at + sizeof(workspace)});
  });
  w.maps.count = static_cast<std::uint32_t>(end - w.maps.all);
}

/// This code's own file, which is outside the root: all forks of the zygote have it mapped.
std::uint64_t own_inode(const map_list& maps) {
  auto here = reinterpret_cast<std::uint64_t>(&write_image);
  const auto* m = std::find_if(maps.all, maps.all + maps.count, [here](const mapping& x) {
    return overlap(x.at, {here, here + 1});
  });
  return m->inode;
}

/// A file without a name cannot be mapped again: its bytes go along.
void copy_nameless_files(map_list& maps) {
  auto own = own_inode(maps);
  for (auto& m : all_of(maps)) {
    if (is_frozen(m))
      m.complete = true;  // what is absent there is as the file has it, and not empty
    if (m.kind != backing::file || m.shared || is_frozen(m) || m.inode == own)
      continue;
    struct stat info {};
    std::string_view path = maps.path_of(m);
    if (path.ends_with(" (deleted)") || ::stat(maps.path_of(m), &info) != 0) {
      m.kind = backing::anonymous;
      m.own_pages = true;
      m.complete = true;
    }
  }
}

int write_list(int pipe, const map_list& maps) {
  image_header header;
  header.heap_end = static_cast<std::uint64_t>(::syscall(SYS_brk, 0));
  header.mappings = maps.count;
  header.path_bytes = maps.path_bytes;
  if (auto failed = write_all(pipe, &header, sizeof header); failed != 0)
    return failed;
  if (auto failed = write_all(pipe, maps.all, maps.count * sizeof(mapping)); failed != 0)
    return failed;
  return write_all(pipe, maps.paths, maps.path_bytes);
}

}  // namespace

int write_image(int pipe) {
  auto* w = static_cast<workspace*>(map_apart(sizeof(workspace), nullptr));
  if (w == nullptr)
    return errno;
  if (auto failed = read_maps("/proc/self/smaps", w->maps); failed != 0)
    return failed;
  remove_workspace(*w);
  copy_nameless_files(w->maps);
  if (auto failed = write_list(pipe, w->maps); failed != 0)
    return failed;
  for (const auto& m : all_of(w->maps))
    if (m.own_pages && m.kind != backing::kernel && !m.shared)
      if (auto failed = write_mapping(pipe, m, *w); failed != 0)
        return failed;
  page_run last;
  return write_all(pipe, &last, sizeof last);
}

// --- outside the memory
// -----------------------------------------------------------------------------

bool prepare_images() {
  return ::sysconf(_SC_PAGESIZE) == static_cast<long>(page_bytes)
         && ::prctl(PR_GET_TID_ADDRESS, &thread_id, 0, 0, 0) == 0;
}

int carry_state() {
  if (thread_id == nullptr)
    return ENOSYS;
  carried.moved = false;
  for (int n = 1; n < NSIG; ++n)
    ::sigaction(n, nullptr, &carried.actions[static_cast<std::size_t>(n)]);
  return ::sigaltstack(nullptr, &carried.signal_stack) == 0 ? 0 : errno;
}

void settle_in() {
  *thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
  for (int n = 1; n < NSIG; ++n)
    ::sigaction(n, &carried.actions[static_cast<std::size_t>(n)], nullptr);
  ::sigaltstack(&carried.signal_stack, nullptr);
  ::munmap(carried.scratch, carried.scratch_bytes);
}

}  // namespace troupe::jail

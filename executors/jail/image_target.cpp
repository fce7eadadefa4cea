#include "executors/jail/image_layout.hpp"
#include "executors/jail/memory_image.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

constexpr int first_foreign_fd = 5;

bool read_all(int pipe, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    auto size = ::read(pipe, at, bytes);
    if (size == 0)
      errno = ENODATA;
    if (size == 0 || (size < 0 && errno != EINTR))
      return false;
    if (size > 0) {
      at += size;
      bytes -= static_cast<std::size_t>(size);
    }
  }
  return true;
}

// --- before the change
// ------------------------------------------------------------------------------

bool read_list(scratch& s) {
  image_header header;
  if (!read_all(s.pipe, &header, sizeof header))
    return false;
  if (header.mappings > max_mappings || header.path_bytes > max_path_bytes) {
    errno = E2BIG;
    return false;
  }
  s.heap_end = header.heap_end;
  s.theirs.count = header.mappings;
  s.theirs.path_bytes = header.path_bytes;
  return read_all(s.pipe, s.theirs.all, header.mappings * sizeof(mapping))
         && read_all(s.pipe, s.theirs.paths, header.path_bytes);
}

/// Null with errno when there is no room for it.
scratch* move_apart(scratch* s) {
  auto at = reinterpret_cast<std::uint64_t>(s);
  auto in_the_way = std::ranges::any_of(all_of(s->theirs), [at](const mapping& m) {
    return overlap(m.at, {at, at + sizeof(scratch)});
  });
  if (!in_the_way)
    return s;
  auto* apart = static_cast<scratch*>(map_apart(sizeof(scratch), &s->theirs));
  if (apart != nullptr)
    std::memcpy(apart, s, sizeof *s);
  ::munmap(s, sizeof *s);
  return apart;
}

void remove_scratch(scratch& s) {
  auto at = reinterpret_cast<std::uint64_t>(&s);
  auto* end = std::remove_if(s.ours.all, s.ours.all + s.ours.count, [at](const mapping& m) {
    return overlap(m.at, {at, at + sizeof(scratch)});
  });
  s.ours.count = static_cast<std::uint32_t>(end - s.ours.all);
}

/// The kernel puts its own mappings elsewhere in each program that is started.
bool same_zygote(scratch& s) {
  auto has = [](map_list& list, const mapping& wanted) {
    return std::ranges::any_of(all_of(list), [&](const mapping& m) {
      return m.kind == backing::kernel && m.at.start == wanted.at.start
             && m.at.end == wanted.at.end;
    });
  };
  auto of_kernel = [](const mapping& m) { return m.kind == backing::kernel; };
  return std::ranges::all_of(all_of(s.ours),
                             [&](auto& m) { return !of_kernel(m) || has(s.theirs, m); })
         && std::ranges::all_of(all_of(s.theirs),
                                [&](auto& m) { return !of_kernel(m) || has(s.ours, m); });
}

void keep_words(words& to, std::span<const char> from) {
  to.bytes = std::min(from.size(), max_words);
  std::memcpy(to.text, from.data(), to.bytes);
}

// --- contents
// ---------------------------------------------------------------------------------------

/// What they have not sent up to `address` is empty there, so it must be here.
void empty_up_to(scratch& s, std::uint64_t address) {
  for (; s.at < s.theirs.count; ++s.at) {
    const auto& m = s.theirs.all[s.at];
    auto from = std::max(s.received, m.at.start);
    auto to = std::min(address, m.at.end);
    if (m.own_pages && is_movable(m) && from < to)
      ::madvise(pointer(from), to - from, MADV_DONTNEED);
    if (address < m.at.end)
      break;
  }
  s.received = address;
}

/// Writes only where something differs, so that the rest stays shared with the zygote.
bool compare_in(scratch& s, address_range r) {
  while (!r.empty()) {
    auto bytes = std::min(length(r), bounce_bytes);
    if (!read_all(s.pipe, s.bounce, bytes))
      return false;
    for (std::size_t i = 0; i < bytes; i += page_bytes)
      if (std::memcmp(pointer(r.start + i), s.bounce + i, page_bytes) != 0)
        std::memcpy(pointer(r.start + i), s.bounce + i, page_bytes);
    r.start += bytes;
  }
  return true;
}

bool read_run(scratch& s, page_run r) {
  while (!r.empty()) {
    while (s.fresh_at < s.fresh_count && s.fresh[s.fresh_at].end <= r.start)
      ++s.fresh_at;
    address_range fresh =
      s.fresh_at < s.fresh_count ? s.fresh[s.fresh_at] : address_range{~0ull, ~0ull};
    auto in_fresh = fresh.start <= r.start;
    auto end = std::min(r.end, in_fresh ? fresh.end : fresh.start);
    auto read =
      in_fresh ? read_all(s.pipe, pointer(r.start), end - r.start) : compare_in(s, {r.start, end});
    if (!read)
      return false;
    r.start = end;
  }
  return true;
}

bool fill(scratch& s) {
  for (page_run r; read_all(s.pipe, &r, sizeof r);) {
    if (r.empty()) {
      empty_up_to(s, ~0ull);
      return true;
    }
    empty_up_to(s, r.start);
    if (!read_run(s, r))
      return false;
    s.received = r.end;
  }
  return false;
}

// --- the change
// -------------------------------------------------------------------------------------

[[noreturn]] void give_up(const scratch& s) {
  const auto& w = errno == ENOMEM ? s.no_memory : s.broken;
  [[maybe_unused]] auto written = ::write(s.answer_fd, w.text, w.bytes);
  ::_exit(0);
}

[[noreturn]] void change(scratch& s) {
  if (!set_heap_end(s) || !unmap_ours(s) || !map_theirs(s) || !protect_for_filling(s) || !fill(s)
      || !protect_filled(s))
    give_up(s);
  ::close_range(first_foreign_fd, ~0u, 0);
  carried.request = s.request;
  carried.frame_bytes = s.frame_bytes;
  carried.scratch = &s;
  carried.scratch_bytes = sizeof s;
  carried.moved = true;
  ::setcontext(&carried.context);
  ::_exit(70);  // EX_SOFTWARE
}

/// makecontext passes on only numbers.
void start_change(unsigned high, unsigned low) {
  change(*static_cast<scratch*>(pointer(static_cast<std::uint64_t>(high) << 32 | low)));
}

[[noreturn]] void change_on_scratch_stack(scratch& s) {
  ucontext_t context;
  ::getcontext(&context);
  sigfillset(&context.uc_sigmask);
  context.uc_stack = {s.stack, 0, stack_bytes};
  context.uc_link = nullptr;
  auto address = reinterpret_cast<std::uint64_t>(&s);
  ::makecontext(&context, reinterpret_cast<void (*)()>(start_change), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  ::setcontext(&context);
  ::_exit(70);  // EX_SOFTWARE
}

}  // namespace

int take_over(int pipe, std::uint32_t request, std::uint32_t frame_bytes, const last_words& last) {
  auto* s = static_cast<scratch*>(map_apart(sizeof(scratch), nullptr));
  if (s == nullptr)
    return errno;
  s->pipe = pipe;
  s->request = request;
  s->frame_bytes = frame_bytes;
  s->answer_fd = last.answer_fd;
  keep_words(s->no_memory, last.no_memory);
  keep_words(s->broken, last.broken);
  auto failed = read_list(*s) ? 0 : errno;
  if (failed == 0) {
    s = move_apart(s);
    if (s == nullptr)
      return errno;
    failed = read_maps("/proc/self/maps", s->ours);
  }
  if (failed == 0) {
    remove_scratch(*s);
    if (same_zygote(*s))
      change_on_scratch_stack(*s);
    failed = EXDEV;
  }
  ::munmap(s, sizeof *s);
  return failed;
}

}  // namespace troupe::jail

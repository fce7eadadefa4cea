#include "executors/jail/memory_map.hpp"

#include "executors/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// Lines of a file, each at most a path and a half long.
class line_reader {
public:
  explicit line_reader(int fd) : fd_{fd} {}

  /// False at the end, and when `error` is set.
  bool next(std::string_view& line) {
    for (;;) {
      std::string_view rest{buffer_ + begin_, end_ - begin_};
      if (auto at = rest.find('\n'); at != rest.npos) {
        line = rest.substr(0, at);
        begin_ += at + 1;
        return true;
      }
      if (!fill())
        return false;
    }
  }

  int error = 0;

private:
  bool fill() {
    std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    auto size = ::read(fd_, buffer_ + end_, sizeof buffer_ - end_);
    if (size < 0 || end_ == sizeof buffer_)
      error = size < 0 ? errno : E2BIG;
    end_ += size > 0 ? static_cast<std::size_t>(size) : 0;
    return size > 0 && error == 0;
  }

  int fd_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  char buffer_[8'192];
};

/// Takes a number, and the one character behind it, off the front.
std::uint64_t take_number(std::string_view& text, int base) {
  std::uint64_t x = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), x, base);
  auto taken = static_cast<std::size_t>(parsed.ptr - text.data());
  text.remove_prefix(std::min(taken + 1, text.size()));
  return x;
}

backing kind_of(std::string_view path) {
  if (path.empty() || path == "[heap]" || path.starts_with("[anon"))
    return backing::anonymous;
  if (path == "[stack]")
    return backing::stack;
  return path.front() == '/' ? backing::file : backing::kernel;
}

/// "7f00-7f10 r-xp 00001000 08:01 1234    /path"
bool add_mapping(std::string_view line, map_list& out) {
  if (out.count == max_mappings)
    return false;
  auto& m = out.all[out.count++];
  m = {};
  m.at.start = take_number(line, 16);
  m.at.end = take_number(line, 16);
  auto flags = line.substr(0, 4);
  line.remove_prefix(std::min<std::size_t>(5, line.size()));
  m.protection = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0)
                 | (flags[2] == 'x' ? PROT_EXEC : 0);
  m.shared = flags[3] == 's';
  m.offset = take_number(line, 16);
  m.device = take_number(line, 16) << 32;
  m.device |= take_number(line, 16);
  m.inode = take_number(line, 10);
  auto path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  m.kind = kind_of(path);
  if (out.path_bytes + path.size() + 1 > max_path_bytes)
    return false;
  m.path = out.path_bytes;
  std::memcpy(out.paths + out.path_bytes, path.data(), path.size());
  out.path_bytes += static_cast<std::uint32_t>(path.size());
  out.paths[out.path_bytes++] = '\0';
  return true;
}

/// "Anonymous:         12 kB"
void add_detail(std::string_view line, mapping& m) {
  auto key = line.substr(0, line.find(':'));
  auto counts = key == "Swap" || key == (m.kind == backing::file ? "Anonymous" : "Rss");
  if (!counts)
    return;
  line.remove_prefix(std::min(line.find_first_of("123456789"), line.size()));
  if (line.empty())
    return;
  m.own_pages = true;
  m.complete |= key == "Swap";  // mincore calls a page absent that has been swapped out
}

bool is_detail(std::string_view line) {
  return !line.empty() && line.front() >= 'A' && line.front() <= 'Z';
}

bool free_of(address_range r, const map_list* theirs) {
  return theirs == nullptr
         || std::none_of(theirs->all, theirs->all + theirs->count,
                         [r](const mapping& m) { return overlap(m.at, r); });
}

}  // namespace

int read_maps(const char* file, map_list& out) {
  unique_fd fd{::open(file, O_RDONLY | O_CLOEXEC)};
  if (!fd)
    return errno;
  out.count = 0;
  out.path_bytes = 0;
  line_reader lines{fd.get()};
  for (std::string_view line; lines.next(line);) {
    if (is_detail(line) && out.count > 0)
      add_detail(line, out.all[out.count - 1]);
    else if (!add_mapping(line, out))
      return E2BIG;
  }
  return lines.error;
}

void* map_apart(std::size_t bytes, const map_list* theirs) {
  constexpr std::uint64_t first = 0x10'0000'0000;
  constexpr std::uint64_t step = 0x4000'0000;
  for (std::uint64_t at = first; at < first + 64 * step; at += step) {
    if (!free_of({at, at + bytes}, theirs))
      continue;
    auto* made = ::mmap(pointer(at), bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made != MAP_FAILED)
      return made;
    if (errno != EEXIST)
      return nullptr;
  }
  errno = EEXIST;
  return nullptr;
}

}  // namespace troupe::jail

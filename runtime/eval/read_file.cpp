#include "runtime/eval/read_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

struct open_file {
  int fd;
  ~open_file() {
    if (fd >= 0)
      ::close(fd);
  }
};

tl::unexpected<error> failed(errc code, const std::string& path, const std::string& what) {
  return fail(code, path + ": " + what);
}

}  // namespace

result<std::string> read_whole_file(const std::string& path, std::size_t max_bytes, pipes take) {
  // Opening a pipe without a writer would wait for one.
  auto flags = O_RDONLY | O_CLOEXEC | (take == pipes::refused ? O_NONBLOCK : 0);
  open_file file{::open(path.c_str(), flags)};
  if (file.fd < 0)
    return failed(errno == ENOENT || errno == ENOTDIR ? errc::not_found : errc::denied, path,
                  errno_text(errno));
  struct stat about {};
  if (::fstat(file.fd, &about) != 0)
    return failed(errc::denied, path, errno_text(errno));
  if (S_ISDIR(about.st_mode))
    return failed(errc::invalid_argument, path, "is a folder, not a file");
  if (take == pipes::refused && !S_ISREG(about.st_mode))
    return failed(errc::invalid_argument, path, "is not a plain file");
  std::string bytes;
  std::size_t used = 0;
  bytes.resize(std::min<std::size_t>(static_cast<std::size_t>(about.st_size) + 1, max_bytes + 1));
  while (true) {
    if (used == bytes.size())
      bytes.resize(std::min(std::max<std::size_t>(2 * used, 1u << 16), max_bytes + 1));
    auto n = ::read(file.fd, bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return failed(errc::unavailable, path, errno_text(errno));
    if (n == 0)
      break;
    used += static_cast<std::size_t>(n);
    if (used > max_bytes)
      return failed(errc::invalid_argument, path,
                    fmt::format("is larger than {} MiB", max_bytes >> 20));
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace troupe

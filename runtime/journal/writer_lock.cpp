#include "runtime/journal/writer_lock.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

/// True when `fd` is still the file of that name: its last owner may have removed it meanwhile.
bool still_named(int fd, const std::string& file) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(file.c_str(), &named) == 0
         && open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

std::string owner_of(int fd) {
  char digits[32];
  auto n = ::pread(fd, digits, sizeof digits, 0);
  return n > 0 ? " (pid " + std::string(digits, static_cast<std::size_t>(n)) + ")" : std::string{};
}

void write_owner(int fd) {
  auto pid = std::to_string(::getpid());
  // Only for the message: a lock without a pid is as good.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0)
    errno = 0;
}

}  // namespace

result<writer_lock> writer_lock::take(const std::string& path) {
  // By the file itself, not by a link to it: two names must not make two writers.
  std::error_code unresolved;
  auto real = std::filesystem::weakly_canonical(path, unresolved);
  auto file = (unresolved ? path : real.string()) + ".lock";
  while (true) {
    auto fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
      return fail(errc::denied, fmt::format("{}: cannot lock it for writing: {}: {}", path, file,
                                            errno_text(errno)));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      auto why =
        errno == EWOULDBLOCK
          ? fmt::format("{}: another process{} is writing it; wait for it to end, or write "
                        "to another file",
                        path, owner_of(fd))
          : fmt::format("{}: cannot lock it: {}", path, errno_text(errno));
      ::close(fd);
      return fail(errc::denied, std::move(why));
    }
    if (still_named(fd, file)) {
      write_owner(fd);
      return writer_lock{std::move(file), fd};
    }
    ::close(fd);
  }
}

writer_lock::writer_lock(writer_lock&& other) noexcept
  : file_{std::move(other.file_)}, fd_{std::exchange(other.fd_, -1)} {}

writer_lock::~writer_lock() {
  if (fd_ < 0)
    return;
  ::unlink(file_.c_str());  // while it is held, so that nobody can lock a file without a name
  ::close(fd_);
}

}  // namespace troupe

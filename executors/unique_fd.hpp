#pragma once

#include <unistd.h>

namespace troupe {

/// A descriptor that is closed with its owner.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_{fd} {}
  ~unique_fd() { reset(); }
  unique_fd(unique_fd&& x) noexcept : fd_{x.release()} {}
  unique_fd& operator=(unique_fd&& x) noexcept {
    if (this != &x)
      reset(x.release());
    return *this;
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

  int release() noexcept {
    auto fd = fd_;
    fd_ = -1;
    return fd;
  }

  void reset(int fd = -1) noexcept {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_ = -1;
};

}  // namespace troupe

#pragma once
// System calls that report failure by exception: for the zygote and init, where a failed step of
// the set-up must end it.

#include <cerrno>
#include <exception>
#include <string>

#include <unistd.h>

namespace troupe::jail {

/// A step of the set-up that failed.
class setup_error final : public std::exception {
public:
  setup_error(std::string what, int number) : what_{std::move(what)}, number_{number} {}

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
  [[nodiscard]] int number() const noexcept { return number_; }  ///< errno, or 0

private:
  std::string what_;
  int number_;
};

/// Throws setup_error when `ok` is false. `what` names the step, in fewer than 48 bytes.
inline void must(bool ok, const char* what) {
  if (!ok)
    throw setup_error{what, errno};
}

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

/// Writes a whole small file, e.g. in /proc. False with errno on failure.
bool write_file(const char* path, const std::string& text);

}  // namespace troupe::jail

#pragma once
// System calls that report failure by exception: for the zygote and init, where a failed step of
// the set-up must end it.

#include "executors/unique_fd.hpp"

#include <cerrno>
#include <exception>
#include <string>

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

/// Throws setup_error when `ok` is false. `what` names the step, in fewer than stage_bytes.
inline void must(bool ok, const char* what) {
  if (!ok)
    throw setup_error{what, errno};
}

/// One message with one descriptor, without blocking. False with errno on failure.
bool send_with_fd(int socket, const void* message, std::size_t size, int fd);

/// Writes a whole small file, e.g. in /proc. False with errno on failure.
bool write_file(const char* path, const std::string& text);

}  // namespace troupe::jail

#pragma once
// One writer per journal: an advisory lock beside the file that the kernel drops with its owner.

#include "runtime/core/error.hpp"

#include <string>

namespace troupe {

/// The right to write one journal. Held on `<path>.lock`, never on the database itself: closing a
/// second descriptor of that would drop SQLite's own POSIX locks in this process. Readers do not
/// see it; it ends with its process, however that ends. Resource.
class writer_lock {
public:
  /// Errors  denied: another process holds it (its pid), or the file cannot be made.
  static result<writer_lock> take(const std::string& path);

  writer_lock(writer_lock&& other) noexcept;
  writer_lock& operator=(writer_lock&&) = delete;
  ~writer_lock();

private:
  writer_lock(std::string file, int fd) : file_{std::move(file)}, fd_{fd} {}

  std::string file_;
  int fd_ = -1;
};

}  // namespace troupe

#include "executors/jail/sys.hpp"

#include <fcntl.h>

namespace troupe::jail {

bool write_file(const char* path, const std::string& text) {
  unique_fd fd{::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace troupe::jail

#pragma once
// The system calls that code in a sandbox may make. Everything else fails with EPERM.

#include <cstddef>
#include <vector>

struct sock_filter;

namespace troupe::jail {

/// A compiled filter. Made once by the zygote, loaded by each worker.
class seccomp_filter {
public:
  /// With `network` TCP sockets can be opened and connected. Throws setup_error: libseccomp could
  /// not build it.
  explicit seccomp_filter(bool network);
  ~seccomp_filter();
  seccomp_filter(const seccomp_filter&) = delete;
  seccomp_filter& operator=(const seccomp_filter&) = delete;

  /// Binds the calling process and its descendants for good. Needs no_new_privs.
  /// Throws setup_error.
  void load() const;

private:
  std::vector<sock_filter> program_;
};

}  // namespace troupe::jail

#include "runtime/net/tcp_progress.hpp"

#include <cstddef>

// The kernel's header, whose tcp_info has the count; libc's has an older one of the same name.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe {

std::optional<std::uint64_t> acknowledged_bytes(int fd) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0
      || size < offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
    return std::nullopt;
  return info.tcpi_bytes_acked;
}

}  // namespace troupe

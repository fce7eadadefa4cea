#include "executors/jail/sys.hpp"

#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>

namespace troupe::jail {

bool send_with_fd(int socket, const void* message, std::size_t size, int fd) {
  iovec data{const_cast<void*>(message), size};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr whole{};
  whole.msg_iov = &data;
  whole.msg_iovlen = 1;
  whole.msg_control = space;
  whole.msg_controllen = sizeof space;
  auto* header = CMSG_FIRSTHDR(&whole);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &whole, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool write_file(const char* path, const std::string& text) {
  unique_fd fd{::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace troupe::jail

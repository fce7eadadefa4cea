#include "executors/control_channel.hpp"

#include "executors/jail/sys.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {
namespace {

error no_channel() {
  auto number = errno;
  return {errc::unavailable, "a channel to a sandbox: " + errno_text(number)};
}

}  // namespace

result<sandbox_channels> make_sandbox_channels() {
  int data[2], control[2], output[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, data) != 0)
    return fail(no_channel());
  unique_fd our_data{data[0]}, their_data{data[1]};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
    return fail(no_channel());
  unique_fd our_control{control[0]}, their_control{control[1]};
  if (::pipe2(output, O_CLOEXEC) != 0)
    return fail(no_channel());
  return sandbox_channels{{std::move(our_data), std::move(our_control), unique_fd{output[0]}},
                          {std::move(their_data), std::move(their_control), unique_fd{output[1]}}};
}

bool control_channel::send(char order) const noexcept {
  return ::send(fd(), &order, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool control_channel::send(char order, int descriptor) const noexcept {
  return jail::send_with_fd(fd(), &order, 1, descriptor);
}

bool control_channel::take(void* note, std::size_t size, unique_fd& descriptor) {
  for (;;) {
    iovec data{note, size};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    auto got = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN)
        close();
      return false;
    }
    auto* header = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (header != nullptr && header->cmsg_len == CMSG_LEN(sizeof fd))
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    descriptor.reset(fd);
    if (got == static_cast<ssize_t>(size))
      return true;
  }
}

}  // namespace troupe

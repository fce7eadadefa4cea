#include "runtime/cli/signals.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace troupe::cli {

signals::signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_fd_ < 0 || wake_fd_ < 0)
    throw std::system_error{errno, std::generic_category(), "signalfd"};
}

signals::~signals() {
  close(signal_fd_);
  close(wake_fd_);
}

signals::event signals::wait(std::chrono::milliseconds longest) {
  pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  if (poll(fds, 2, static_cast<int>(longest.count())) <= 0)
    return event::none;
  if ((fds[0].revents & POLLIN) != 0) {
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      return event::interrupted;
  }
  return (fds[1].revents & POLLIN) != 0 ? event::woken : event::none;
}

void signals::wake() {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = write(wake_fd_, &one, sizeof one);  // only fails when it is awake
}

}  // namespace troupe::cli

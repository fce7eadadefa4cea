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

namespace {

sigset_t ours() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

bool take_signal(int fd) {
  signalfd_siginfo info{};
  return read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

void ring(int fd) {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = write(fd, &one, sizeof one);  // only fails when it rings already
}

}  // namespace

signals::signals() {
  auto set = ours();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  nudge_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_fd_ < 0 || wake_fd_ < 0 || nudge_fd_ < 0)
    throw std::system_error{errno, std::generic_category(), "signalfd"};
}

signals::~signals() {
  while (take_signal(signal_fd_)) {  // one that came too late to matter ends nothing
  }
  auto set = ours();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  close(signal_fd_);
  close(wake_fd_);
  close(nudge_fd_);
}

signals::event signals::wait(std::chrono::milliseconds longest, int out, int in) {
  pollfd fds[5] = {{signal_fd_, POLLIN, 0},
                   {wake_fd_, POLLIN, 0},
                   {nudge_fd_, POLLIN, 0},
                   {out, POLLOUT, 0},
                   {in, POLLIN, 0}};
  if (poll(fds, 5, static_cast<int>(longest.count())) <= 0)
    return event::none;
  if (fds[0].revents != 0 && take_signal(signal_fd_))
    return event::interrupted;
  if (fds[1].revents != 0)
    return event::woken;
  if (fds[3].revents != 0)  // an error too: writing will tell
    return event::writable;
  if (fds[4].revents != 0)  // its end too: reading will tell
    return event::readable;
  std::uint64_t nudges = 0;
  if (fds[2].revents != 0 && read(nudge_fd_, &nudges, sizeof nudges) == sizeof nudges)
    return event::nudged;
  return event::none;
}

void signals::wake() {
  ring(wake_fd_);
}

void signals::nudge() {
  ring(nudge_fd_);
}

}  // namespace troupe::cli

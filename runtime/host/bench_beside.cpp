#include "runtime/host/bench_beside.hpp"

#include "runtime/host/bench_parts.hpp"

#include <optional>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {
namespace {

using namespace measure;

/// The p50 of running a command to its end, in us; nothing when it does not work here.
std::optional<double> time_command(std::vector<std::string> argv, int n) {
  std::vector<double> times;
  for (int i = 0; i < n; ++i) {
    std::vector<char*> args;
    for (auto& a : argv)
      args.push_back(a.data());
    args.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (int fd : {1, 2})
      ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    auto from = steady_clock::now();
    pid_t pid = 0;
    auto failed = ::posix_spawnp(&pid, args[0], &files, nullptr, args.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    int status = 0;
    if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0)
      return std::nullopt;
    times.push_back(since_us(from));
  }
  return quantile(times, 0.5);
}

/// The p50 of a byte to another process and back, in us: what any answer from a process takes here.
std::optional<double> time_echo(int n) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return std::nullopt;
  auto child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    for (char byte = 0; ::read(ends[1], &byte, 1) == 1 && ::write(ends[1], &byte, 1) == 1;) {
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::vector<double> times;
  char byte = 0;
  for (int i = 0; child > 0 && i < n; ++i) {
    auto from = steady_clock::now();
    if (::write(ends[0], &byte, 1) != 1 || ::read(ends[0], &byte, 1) != 1)
      break;
    times.push_back(since_us(from));
  }
  ::close(ends[0]);
  if (child > 0)
    ::waitpid(child, nullptr, 0);
  if (times.empty())
    return std::nullopt;
  return quantile(times, 0.5);
}

}  // namespace

std::string bench_beside() {
  std::string text;
  auto echo = time_echo(2000);
  text += line("beside it: a byte to a process and back, p50", echo ? us(*echo) : "not here");
  auto show = [&](const std::string& what, std::optional<double> time) {
    text += line(what, time ? ms(*time) : "not here");
  };
  // By its path: what PATH names first may be a script that looks for one.
  show("beside it: /usr/bin/python3 -c 1+1, no isolation",
       time_command({"/usr/bin/python3", "-c", "1+1"}, 20));
  show("beside it: bubblewrap and python3",
       time_command({"bwrap",     "--unshare-all", "--ro-bind",        "/usr",
                     "/usr",      "--symlink",     "usr/lib",          "/lib",
                     "--symlink", "usr/lib64",     "/lib64",           "--symlink",
                     "usr/bin",   "/bin",          "--proc",           "/proc",
                     "--dev",     "/dev",          "/usr/bin/python3", "-c",
                     "1+1"},
                    20));
  show("beside it: docker run --rm (image python:3-slim, if it is there)",
       time_command({"docker", "run", "--rm", "--pull", "never", "--network", "none",
                     "python:3-slim", "python3", "-c", "1+1"},
                    3));
  return text;
}

}  // namespace troupe

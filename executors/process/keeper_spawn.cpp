#include "executors/process/keeper_spawn.hpp"

#include "executors/process/keeper_wire.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::process {
namespace {

/// posix_spawn's two option objects: default signals, none blocked, a session of its own, and no
/// descriptor but those that `give` named.
class spawn_options {
public:
  spawn_options() {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawnattr_init(&attributes_);
    sigset_t set;
    sigfillset(&set);
    ::posix_spawnattr_setsigdefault(&attributes_, &set);
    sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes_, &set);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  }
  ~spawn_options() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  spawn_options(const spawn_options&) = delete;
  spawn_options& operator=(const spawn_options&) = delete;

  void give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&files_, fd, as); }
  void close_from(int fd) { ::posix_spawn_file_actions_addclosefrom_np(&files_, fd); }

  [[nodiscard]] result<kept> spawn(std::vector<std::string> arguments,
                                   std::vector<std::string> environment) {
    auto argv = pointers(arguments);
    auto envp = pointers(environment);
    kept k;
    auto number = ::posix_spawn(&k.pid, argv[0], &files_, &attributes_, argv.data(), envp.data());
    if (number != 0)
      return fail(errc::unavailable, "cannot start " + arguments[0] + ": " + errno_text(number));
    k.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, k.pid, 0)));
    return k;
  }

private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (auto& t : texts)
      out.push_back(t.data());
    out.push_back(nullptr);
    return out;
  }

  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// A duplicate above the descriptors that the spawn itself writes to.
unique_fd above_wired(int fd) {
  return unique_fd{::fcntl(fd, F_DUPFD_CLOEXEC, control_fd + 1)};
}

/// As in the jail, but for the directories. The hash seed makes sets iterate in the same order in
/// each sandbox; the worker takes it out again.
std::vector<std::string> environment_in(const std::string& directory) {
  return {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + directory + "/work",
          "TMPDIR=" + directory + "/tmp", "LANG=C.UTF-8", "PYTHONHASHSEED=0"};
}

}  // namespace

result<kept> spawn_keeper(const keeper_program& program, const std::vector<std::string>& argv,
                          const sandbox_ends& channels, int source) {
  const std::array fds{above_wired(channels.output.get()), above_wired(channels.data.get()),
                       above_wired(source), above_wired(channels.control.get())};
  for (const auto& fd : fds)
    if (!fd)
      return fail(errc::unavailable, "no descriptor is free for a sandbox");
  spawn_options options;
  options.give(fds[0].get(), 1);
  options.give(fds[0].get(), 2);
  options.give(fds[1].get(), data_fd);
  options.give(fds[2].get(), source_fd);
  options.give(fds[3].get(), control_fd);
  options.close_from(control_fd + 1);
  std::vector<std::string> arguments{program.path, program.directory};
  arguments.insert(arguments.end(), argv.begin(), argv.end());
  return options.spawn(std::move(arguments), environment_in(program.directory));
}

result<kept> spawn_sweeper(const keeper_program& program, pid_t session) {
  spawn_options options;
  options.give(0, 1);
  options.give(0, 2);
  options.close_from(3);
  return options.spawn({program.path, "--sweep", program.directory, std::to_string(session)}, {});
}

}  // namespace troupe::process

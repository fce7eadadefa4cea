// troupe-keeper: starts one worker, ends all that came of it, and removes its directory.
//
// Usage (by the runtime only):
//   troupe-keeper DIRECTORY PROGRAM ARGUMENT...   with descriptors as in keeper_wire.hpp
//   troupe-keeper --sweep DIRECTORY SESSION       after a keeper that was killed
// It is the reaper of its descendants: whatever they do, an orphan among them becomes its child.

#include "executors/jail/limits.hpp"
#include "executors/jail/striker.hpp"
#include "executors/jail/sys.hpp"
#include "executors/process/keeper_wire.hpp"
#include "executors/process/sweep.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::process {
namespace {

using jail::must;
using jail::setup_error;

void send_note(note_kind kind, std::int32_t value, const char* stage = "") {
  keeper_note note;
  note.kind = kind;
  note.value = value;
  std::strncpy(note.stage, stage, sizeof note.stage - 1);
  [[maybe_unused]] auto sent = ::send(control_fd, &note, sizeof note, MSG_NOSIGNAL);
}

// --- the worker
// -----------------------------------------------------------------------------------

/// An ignored SIGCHLD would make each subprocess look like a success.
void reset_signals() {
  for (int n = 1; n < NSIG; ++n)
    ::signal(n, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  must(::sigprocmask(SIG_SETMASK, &none, nullptr) == 0, "unblock signals");
}

[[noreturn]] void run_worker(pid_t keeper, const std::string& directory,
                             const jail::spawn_request& limits, char** argv) noexcept {
  try {
    must(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == keeper, "tie it to the keeper");
    must(::setsid() > 0, "setsid");
    must(::chdir((directory + "/work").c_str()) == 0, "enter the work directory");
    reset_signals();
    jail::set_limits(limits);
    ::execv(argv[0], argv);
    must(false, ("start " + std::string{argv[0]}).substr(0, 47).c_str());
  } catch (const setup_error& e) {
    send_note(note_kind::failed, e.number(), e.what());
  } catch (...) {
  }
  std::_Exit(71);  // EX_OSERR
}

// --- the keeper
// -----------------------------------------------------------------------------------

jail::spawn_request receive_limits() {
  jail::spawn_request limits;
  must(::recv(control_fd, &limits, sizeof limits, 0) == sizeof limits, "read the limits");
  return limits;
}

int open_child_signals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  return ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Reaps orphans; true when the worker has ended. It stays a zombie, so that its number remains the
/// name of its group.
bool worker_ended(int child_signals, pid_t worker, int& status) {
  signalfd_siginfo signals[8];
  while (::read(child_signals, signals, sizeof signals) > 0) {
  }
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return false;
    if (info.si_pid == worker) {
      status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
      return true;
    }
    ::waitpid(info.si_pid, nullptr, 0);
  }
}

/// False when the runtime has gone or has closed the sandbox.
bool obey(pid_t worker, jail::striker& striker) {
  char order = 0;
  if (::recv(control_fd, &order, 1, 0) != 1)
    return false;
  if (order == interrupt_order) {
    striker.strike(worker);
    send_note(note_kind::interrupted, 0);
  }
  return true;
}

void supervise(int child_signals, pid_t worker) {
  pollfd waits[] = {{control_fd, POLLIN, 0}, {child_signals, POLLIN, 0}};
  jail::striker striker;
  for (;;) {
    auto ready = ::poll(waits, 2, striker.pause_ms());
    if (ready < 0 && errno != EINTR)
      return;
    if (ready == 0)
      striker.remind(worker);
    int status = 0;
    if (waits[1].revents != 0 && worker_ended(child_signals, worker, status)) {
      send_note(note_kind::exited, status);
      return;
    }
    if (waits[0].revents != 0 && !obey(worker, striker))
      return;
  }
}

/// The worker's channels are the worker's alone: their end of file means that nobody has them.
void let_go() {
  ::close(data_fd);
  ::close(source_fd);
  ::dup2(0, 1);
  ::dup2(0, 2);
}

pid_t start_worker(const std::string& directory, char** argv) {
  must(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "become the reaper");
  must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
       "no_new_privs");  // else setuid programs escape us
  must(::fcntl(control_fd, F_SETFD, FD_CLOEXEC) == 0, "keep the control socket");
  auto limits = receive_limits();
  auto self = ::getpid();
  auto worker = ::fork();
  must(worker >= 0, "fork the worker");
  if (worker == 0)
    run_worker(self, directory, limits, argv);
  send_note(note_kind::started, worker);
  let_go();
  return worker;
}

int keep(const std::string& directory, char** argv) {
  ::prctl(PR_SET_NAME, "troupe-keeper");
  ::umask(022);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  pid_t worker = 0;
  try {
    auto child_signals = open_child_signals();
    must(child_signals >= 0, "signalfd");
    worker = start_worker(directory, argv);
    supervise(child_signals, worker);
    ::close(child_signals);
  } catch (const setup_error& e) {
    send_note(note_kind::failed, e.number(), e.what());
  }
  auto left = end_descendants(worker) ? 0 : left_processes;
  return remove_tree(directory) ? left : left | left_files;
}

int sweep(const std::string& directory, pid_t session) {
  auto left = end_session(session, directory) ? 0 : left_processes;
  return remove_tree(directory) ? left : left | left_files;
}

}  // namespace
}  // namespace troupe::process

int main(int argc, char** argv) {
  using namespace troupe::process;
  if (argc == 4 && std::strcmp(argv[1], "--sweep") == 0)
    return sweep(argv[2], std::atoi(argv[3]));
  return argc >= 3 ? keep(argv[1], argv + 2) : 64;  // EX_USAGE
}

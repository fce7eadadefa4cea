#include "executors/jail/init.hpp"

#include "executors/jail/caps.hpp"
#include "executors/jail/limits.hpp"
#include "executors/jail/python.hpp"
#include "executors/jail/root.hpp"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace troupe::jail {
namespace {

constexpr int worker_data_fd = 3;

void send_note(int control, note_kind kind, std::int32_t value, const char* stage = "") {
  init_note note;
  note.kind = kind;
  note.value = value;
  std::strncpy(note.stage, stage, sizeof note.stage - 1);
  [[maybe_unused]] auto sent = ::send(control, &note, sizeof note, MSG_NOSIGNAL);
}

// --- the worker
// -----------------------------------------------------------------------------------

/// Puts what the worker needs at 0 to 3 and closes everything else.
void arrange_descriptors(const sandbox_parts& parts) {
  // Moved up first, so that no dup2 hits a descriptor that is still needed.
  auto null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto data = ::fcntl(parts.data.get(), F_DUPFD_CLOEXEC, 16);
  auto output = ::fcntl(parts.output.get(), F_DUPFD_CLOEXEC, 16);
  must(null >= 0 && data >= 0 && output >= 0, "open the worker's descriptors");
  must(::dup2(null, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(output, 2) == 2
         && ::dup3(data, worker_data_fd, O_CLOEXEC) == worker_data_fd,
       "arrange the worker's descriptors");
  must(::close_range(worker_data_fd + 1, ~0u, 0) == 0, "close_range");
}

/// An ignored SIGCHLD would make each subprocess look like a success.
void reset_signals() {
  for (int n = 1; n < NSIG; ++n)
    ::signal(n, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  must(::sigprocmask(SIG_SETMASK, &none, nullptr) == 0, "unblock signals");
}

[[noreturn]] void run_worker_process(const sandbox_parts& parts) noexcept {
  auto control = parts.control.get();
  try {
    must(::setsid() > 0, "setsid");
    must(::chdir("/work") == 0, "enter /work");
    reset_signals();
    become_worker(parts.mode);
    set_limits(parts.request);
    auto frame_bytes = parts.request.frame_bytes;
    const auto& filter = *parts.filter;
    arrange_descriptors(parts);
    control = -1;
    filter.load();
    std::_Exit(run_worker(frame_bytes));
  } catch (const setup_error& e) {
    if (control >= 0)
      send_note(control, note_kind::failed, e.number(), e.what());
  } catch (...) {
  }
  std::_Exit(71);  // EX_OSERR
}

// --- init
// -----------------------------------------------------------------------------------------

int open_child_signals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  return ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Reaps all that have ended; true when the worker is among them.
bool reap(int child_signals, pid_t worker, int& status) {
  signalfd_siginfo info[8];
  while (::read(child_signals, info, sizeof info) > 0) {
  }
  auto worker_ended = false;
  int one = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
    if (pid == worker) {
      worker_ended = true;
      status = one;
    }
  }
  return worker_ended;
}

/// False when the runtime has gone or has closed the sandbox.
bool obey(int control, pid_t worker) {
  char order = 0;
  if (::recv(control, &order, 1, 0) != 1)
    return false;
  if (order == interrupt_order) {
    ::kill(worker, SIGINT);
    send_note(control, note_kind::interrupted, 0);
  }
  return true;
}

/// The kernel kills the rest of the pid namespace when this process ends.
void supervise(int control, int child_signals, pid_t worker) {
  pollfd waits[] = {{control, POLLIN, 0}, {child_signals, POLLIN, 0}};
  for (;;) {
    if (::poll(waits, 2, -1) < 0 && errno != EINTR)
      return;
    int status = 0;
    if (waits[1].revents != 0 && reap(child_signals, worker, status)) {
      send_note(control, note_kind::exited, status);
      return;
    }
    if (waits[0].revents != 0 && !obey(control, worker))
      return;
  }
}

/// "0" is the writer itself: cheaper by far than a pid written by another.
void join_groups(sandbox_parts& parts) {
  for (auto& tasks : parts.tasks) {
    if (tasks)
      must(::write(tasks.get(), "0", 1) == 1, "join a control group");
    tasks.reset();
  }
  parts.group.reset();
}

void wait_for_start(unique_fd& start) {
  char go = 0;
  must(::read(start.get(), &go, 1) == 1, "wait for the zygote");
  start.reset();
}

/// Init keeps no end of the worker's channels: their end-of-file means that the sandbox is empty.
void let_go(sandbox_parts& parts) {
  parts.data.reset();
  parts.output.reset();
}

void set_up_and_supervise(sandbox_parts& parts) {
  join_groups(parts);
  wait_for_start(parts.start);
  become_init(parts.mode);
  must(::sethostname("sandbox", 7) == 0, "sethostname");
  if (auto lacking = mount_sandbox(parts.request); lacking != 0)
    send_note(parts.control.get(), note_kind::lacking, lacking);
  must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "not dumpable");
  auto child_signals = open_child_signals();
  must(child_signals >= 0, "signalfd");
  auto worker = ::fork();
  must(worker >= 0, "fork the worker");
  if (worker == 0)
    run_worker_process(parts);
  reduce_init(parts.mode);
  let_go(parts);
  supervise(parts.control.get(), child_signals, worker);
}

}  // namespace

void run_init(sandbox_parts parts) noexcept {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  try {
    set_up_and_supervise(parts);
  } catch (const setup_error& e) {
    send_note(parts.control.get(), note_kind::failed, e.number(), e.what());
    std::_Exit(71);
  } catch (...) {
    std::_Exit(70);
  }
  std::_Exit(0);
}

}  // namespace troupe::jail

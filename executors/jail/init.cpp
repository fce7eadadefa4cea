#include "executors/jail/init.hpp"

#include "executors/jail/caps.hpp"
#include "executors/jail/checkpoint.hpp"
#include "executors/jail/landlock.hpp"
#include "executors/jail/limits.hpp"
#include "executors/jail/proxy_socket.hpp"
#include "executors/jail/python.hpp"
#include "executors/jail/sandbox_mounts.hpp"
#include "executors/jail/striker.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

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

/// Puts what the worker needs at 0 to 4 and closes everything else.
void arrange_descriptors(const sandbox_parts& parts) {
  // Moved up first, so that no dup2 hits a descriptor that is still needed.
  auto null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto data = ::fcntl(parts.data.get(), F_DUPFD_CLOEXEC, 16);
  auto output = ::fcntl(parts.output.get(), F_DUPFD_CLOEXEC, 16);
  auto saved = ::fcntl(parts.saved.get(), F_DUPFD_CLOEXEC, 16);
  must(null >= 0 && data >= 0 && output >= 0 && saved >= 0, "open the worker's descriptors");
  must(::dup2(null, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(output, 2) == 2
         && ::dup3(data, worker_data_fd, O_CLOEXEC) == worker_data_fd
         && ::dup3(saved, saved_fd, O_CLOEXEC) == saved_fd,
       "arrange the worker's descriptors");
  must(::close_range(saved_fd + 1, ~0u, 0) == 0, "close_range");
}

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  must(::sigprocmask(SIG_SETMASK, &none, nullptr) == 0, "unblock signals");
}

[[noreturn]] void run_worker_process(const sandbox_parts& parts) noexcept {
  auto control = parts.control.get();
  try {
    ::prctl(PR_SET_NAME, "troupe-worker");
    must(::setsid() > 0, "setsid");
    must(::chdir("/work") == 0, "enter /work");
    unblock_signals();
    become_worker(parts.mode);
    if (landlock_version() > 0)
      enter_landlock(parts.request.network != 0 ? proxy_port : 0);
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

/// What init watches over. The kernel kills the rest of the pid namespace when it ends.
class supervisor {
public:
  /// `processes` is -1 where there are no checkpoints.
  supervisor(int control, int child_signals, int saved, int processes, pid_t worker)
    : control_{control}, child_signals_{child_signals}, saved_{saved}, processes_{processes},
      worker_{worker} {}

  void run() {
    pollfd waits[] = {{control_, POLLIN, 0}, {child_signals_, POLLIN, 0}, {saved_, POLLIN, 0}};
    for (;;) {
      auto ready = ::poll(waits, 3, striker_.pause_ms());
      if (ready < 0 && errno != EINTR)
        return;
      if (ready == 0)
        striker_.remind(worker_);
      take_saved();
      if ((waits[2].revents & POLLHUP) != 0)
        waits[2].fd = -1;  // the code has closed it: nothing more comes
      if (waits[1].revents != 0 && worker_ended() && !restore(status_)) {
        send_note(control_, note_kind::exited, status_);
        return;
      }
      if (waits[0].revents != 0 && !obey())
        return;
    }
  }

private:
  /// The latest checkpoint's pid, as the worker says: at worst another process of this sandbox.
  void take_saved() {
    constexpr int most_at_once = 64;  // the code may write without end
    saved_note note;
    for (int i = 0; i < most_at_once; ++i) {
      auto size = ::recv(saved_, &note, sizeof note, MSG_DONTWAIT | MSG_TRUNC);
      if (size <= 0)
        return;
      if (size == sizeof note)
        checkpoint_ = note.pid;
    }
  }

  /// Reaps all that have ended; true when the worker is among them.
  bool worker_ended() {
    signalfd_siginfo info[8];
    while (::read(child_signals_, info, sizeof info) > 0) {
    }
    auto ended = false;
    int one = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
      if (pid == worker_) {
        ended = true;
        status_ = one;
      }
      if (pid == checkpoint_)
        checkpoint_ = 0;
    }
    return ended;
  }

  /// Makes the checkpoint the worker, alone in the sandbox. False when there is none to be had.
  bool restore(int status) {
    auto kept = std::exchange(checkpoint_, 0);
    if (processes_ < 0 || kept <= 1 || kept == worker_ || !end_all_but(processes_, kept)
        || !answers_call(saved_, kept))
      return false;
    worker_ = kept;
    send_note(control_, note_kind::restored, status);
    return true;
  }

  /// False when the runtime has gone or has closed the sandbox.
  bool obey() {
    char order = 0;
    iovec data{&order, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    if (::recvmsg(control_, &message, MSG_CMSG_CLOEXEC) != 1)
      return false;
    if (order == interrupt_order) {
      striker_.strike(worker_);
      send_note(control_, note_kind::interrupted, 0);
    } else if (order == restore_order) {
      if (!restore(SIGKILL))
        send_note(control_, note_kind::no_checkpoint, 0);
    } else if (order == resume_order || order == branch_order) {
      pass_on(message);
    }
    return true;
  }

  /// The same message, descriptor and all, to the worker, or the checkpoint that is to be it.
  void pass_on(msghdr& message) const {
    ::sendmsg(saved_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    auto* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(int)))
      return;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    ::close(fd);
  }

  int control_;
  int child_signals_;
  int saved_;
  int processes_;
  pid_t worker_;
  pid_t checkpoint_ = 0;
  striker striker_;
  int status_ = 0;
};

/// The runtime takes the connections that are made in here.
void offer_proxy(int control) {
  auto listener = listen_for_proxy();
  init_note note;
  note.kind = note_kind::listening;
  must(send_with_fd(control, &note, sizeof note, listener.get()), "send the proxy's socket");
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
  parts.saved.reset();
}

/// Our end of the socket to the worker and its checkpoints; theirs goes into `parts`.
unique_fd make_saved_socket(sandbox_parts& parts) {
  int pair[2];
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0,
       "socketpair for the worker");
  parts.saved.reset(pair[1]);
  return unique_fd{pair[0]};
}

void set_up_and_supervise(sandbox_parts& parts) {
  join_groups(parts);
  wait_for_start(parts.start);
  become_init(parts.mode);
  must(::sethostname("sandbox", 7) == 0, "sethostname");
  if (parts.request.network != 0)
    offer_proxy(parts.control.get());
  auto lacking = mount_sandbox(parts.request);
  if (landlock_version() == 0)
    lacking |= lacking_landlock;
  if (lacking != 0)
    send_note(parts.control.get(), note_kind::lacking, lacking);
  must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "not dumpable");
  auto child_signals = open_child_signals();
  must(child_signals >= 0, "signalfd");
  auto saved = make_saved_socket(parts);
  unique_fd processes;
  if (parts.request.checkpoints != 0)
    processes = open_process_list();
  auto worker = ::fork();
  must(worker >= 0, "fork the worker");
  if (worker == 0)
    run_worker_process(parts);
  reduce_init(parts.mode);
  let_go(parts);
  supervisor{parts.control.get(), child_signals, saved.get(), processes.get(), worker}.run();
}

}  // namespace

void run_init(sandbox_parts parts) noexcept {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "troupe-init");
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

#include "executors/jail/seccomp.hpp"

#include "executors/jail/sys.hpp"

#include <seccomp.h>

#include <cstdint>
#include <optional>

#include <asm/ioctls.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// Allowed with any arguments. Names that an architecture lacks are skipped.
constexpr const char* allowed[] = {
  // files, by descriptor and by name
  "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
  "pwritev2", "lseek", "open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2",
  "dup3", "fcntl", "flock", "fsync", "fdatasync", "sync_file_range", "ftruncate", "truncate",
  "fallocate", "fadvise64", "readahead", "copy_file_range", "sendfile", "stat", "fstat", "lstat",
  "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2", "getdents",
  "getdents64", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "rename", "renameat",
  "renameat2", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat", "readlink",
  "readlinkat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "umask",
  "utime", "utimes", "utimensat", "futimesat", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
  "llistxattr", "flistxattr", "inotify_init", "inotify_init1", "inotify_add_watch",
  "inotify_rm_watch",
  // memory
  "brk", "mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise", "msync", "mincore",
  "membarrier",
  // processes and threads; clone has its own rule
  "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid",
  "getppid", "gettid", "getpgid", "getpgrp", "setpgid", "getsid", "setsid", "getuid", "geteuid",
  "getgid", "getegid", "getresuid", "getresgid", "getgroups", "capget", "set_tid_address",
  "set_robust_list", "get_robust_list", "rseq", "futex", "futex_waitv", "arch_prctl",
  "set_thread_area", "get_thread_area", "getrlimit", "setrlimit", "getrusage", "getpriority",
  "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler",
  "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "getcpu", "uname",
  "sysinfo", "times", "getrandom", "restart_syscall",
  // signals: only processes of the same pid namespace can be named
  "kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigqueueinfo",
  "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack", "pause",
  "signalfd", "signalfd4",
  // time
  "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time", "alarm",
  "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun",
  "timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime",
  // waiting
  "select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
  "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "pipe", "pipe2",
  // on socket pairs: there is no other socket
  "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "getsockopt",
  "setsockopt", "getsockname", "getpeername"};

struct rule {
  const char* name;
  scmp_arg_cmp condition;
  std::optional<scmp_arg_cmp> also{};
};

constexpr scmp_datum_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC
                                         | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
                                         | 0x80 /* CLONE_NEWTIME */;
constexpr scmp_datum_t query_personality = 0xffffffff;
constexpr scmp_datum_t socket_type_mask =
  0xf;  // SOCK_TYPE_MASK: without the CLOEXEC and NONBLOCK bits

constexpr scmp_arg_cmp equals(unsigned argument, scmp_datum_t x) {
  return {argument, SCMP_CMP_EQ, x, 0};
}

constexpr scmp_arg_cmp masked(unsigned argument, scmp_datum_t mask, scmp_datum_t x) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, x};
}

/// Allowed with these arguments.
constexpr rule conditional[] = {
  {"clone", masked(0, namespace_flags, 0)},
  // Stream pairs only: a datagram socket can be sent to a name that another sandbox was given.
  {"socketpair", equals(0, AF_UNIX), masked(1, socket_type_mask, SOCK_STREAM)},
  {"prlimit64", equals(0, 0)},  // its own limits only
  {"personality", equals(0, query_personality)},
  {"mknod", masked(1, S_IFMT, S_IFIFO)},
  {"mknodat", masked(2, S_IFMT, S_IFIFO)},
  {"ioctl", equals(1, TCGETS)},
  {"ioctl", equals(1, TIOCGWINSZ)},
  {"ioctl", equals(1, FIONREAD)},
  {"ioctl", equals(1, FIONBIO)},
  {"ioctl", equals(1, FIOCLEX)},
  {"ioctl", equals(1, FIONCLEX)},
  {"prctl", equals(0, PR_SET_NAME)},
  {"prctl", equals(0, PR_GET_NAME)},
  {"prctl", equals(0, PR_GET_DUMPABLE)},
  {"prctl", equals(0, PR_SET_PDEATHSIG)},
  {"prctl", equals(0, PR_SET_VMA)},
};

/// With a network, beside connect. In its own namespace there is nothing but the proxy.
constexpr rule tcp_socket{"socket", equals(0, AF_INET), masked(1, socket_type_mask, SOCK_STREAM)};

/// An open libseccomp context.
class context {
public:
  context() : ctx_{::seccomp_init(SCMP_ACT_ERRNO(EPERM))} { must(ctx_ != nullptr, "seccomp_init"); }
  ~context() { ::seccomp_release(ctx_); }
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  void set(scmp_filter_attr attribute, std::uint32_t x) {
    check(::seccomp_attr_set(ctx_, attribute, x), "seccomp attribute");
  }

  void add(std::uint32_t action, const char* name, unsigned conditions = 0,
           const scmp_arg_cmp* condition = nullptr) {
    auto number = ::seccomp_syscall_resolve_name(name);
    if (number != __NR_SCMP_ERROR)
      check(::seccomp_rule_add_array(ctx_, action, number, conditions, condition), name);
  }

  [[nodiscard]] std::vector<sock_filter> compile() {
    unique_fd memory{::memfd_create("filter", MFD_CLOEXEC)};
    must(static_cast<bool>(memory), "memfd_create");
    check(::seccomp_export_bpf(ctx_, memory.get()), "compile the seccomp filter");
    auto bytes = ::lseek(memory.get(), 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
    must(::pread(memory.get(), program.data(), static_cast<std::size_t>(bytes), 0) == bytes,
         "read the seccomp filter");
    return program;
  }

private:
  static void check(int status, const char* what) {
    if (status < 0)
      throw setup_error{what, -status};
  }

  scmp_filter_ctx ctx_;
};

}  // namespace

seccomp_filter::seccomp_filter(bool network) {
  context ctx;
  ctx.set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  ctx.set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree: 170 comparisons would cost each call
  for (auto* name : allowed)
    ctx.add(SCMP_ACT_ALLOW, name);
  auto add_rule = [&](const rule& r) {
    const scmp_arg_cmp conditions[] = {r.condition, r.also.value_or(r.condition)};
    ctx.add(SCMP_ACT_ALLOW, r.name, r.also ? 2 : 1, conditions);
  };
  for (const auto& r : conditional)
    add_rule(r);
  if (network) {
    add_rule(tcp_socket);
    ctx.add(SCMP_ACT_ALLOW, "connect");
  }
  ctx.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");  // libc then uses clone, whose flags can be checked
  program_ = ctx.compile();
}

seccomp_filter::~seccomp_filter() = default;

void seccomp_filter::load() const {
  auto program = program_;  // the kernel's interface takes a pointer to non-const
  sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0, "load the seccomp filter");
}

}  // namespace troupe::jail

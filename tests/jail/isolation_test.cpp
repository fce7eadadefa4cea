#include "executors/jail/cgroup.hpp"
#include "tests/jail/jail_fixture.hpp"

#include <cstdlib>
#include <filesystem>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Python that gives the errno name of a raw system call, or "done".
constexpr const char* calls = R"(
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def sys(number, *args):
  ctypes.set_errno(0)
  r = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
  return "done" if r >= 0 else errno.errorcode[ctypes.get_errno()]
def err(f):
  try: f()
  except OSError as e: return errno.errorcode[e.errno]
  return "done"
)";

void check_walls(jail_fixture& fx) {
  auto s = fx.open();
  fx.run(*s, calls);
  auto is = [&](const char* code, const char* expected) {
    INFO(code);
    CHECK(tagged(fx.run(*s, code)) == expected);
  };
  // Files.
  is("err(lambda: open('/etc/shadow'))", "\"ENOENT\"");
  is("sorted(set(os.listdir('/etc')) - {'alternatives', 'matplotlibrc'})",
     R"(["group","hosts","ld.so.cache","nsswitch.conf","passwd"])");
  is("err(lambda: open('/x', 'w'))", "\"EROFS\"");
  is("err(lambda: open('/usr/x', 'w'))", "\"EROFS\"");
  is("err(lambda: open('/etc/passwd', 'a')) in ('EROFS', 'EACCES')", "true");
  is("[os.path.exists(p) for p in ('/home', '/root', '/run', '/sys', '/var', '/old', '/boot')]",
     "[false,false,false,false,false,false,false]");
  is("sorted(os.listdir('/dev'))",
     R"(["fd","full","null","random","shm","stderr","stdin","stdout","urandom","zero"])");
  is("os.getcwd(), open('/tmp/a', 'w').write('x'), open('b', 'w').write('y')",
     R"({"__type__":"tuple","data":["/work",1,1]})");
  // What the process has.
  is("sorted(os.environ)", R"(["HOME","LANG","PATH","TMPDIR"])");
  is("[f for f in range(64) if err(lambda: os.fstat(f)) == 'done']", "[0,1,2,3,4]");
  is("[os.getuid(), os.getgid(), os.getgroups()]", "[1000,1000,[]]");
  is("[l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')]",
     R"(["0000000000000000","0000000000000000","0000000000000000","0000000000000000",)"
     R"("0000000000000000"])");
  is("[l.split()[1] for l in open('/proc/self/status') if l[:4] in ('NoNe', 'Secc')]",
     R"(["1","2","1"])");
  is("os.uname().nodename", "\"sandbox\"");
  CHECK(fx.run(*s, "input()").error->type == "EOFError");
  // Other processes: only its own pid namespace.
  is("sorted(int(p) for p in os.listdir('/proc') if p.isdigit())[-1] < 10", "true");
  is("os.path.exists('/proc/sys'), os.path.exists('/proc/meminfo')",
     R"({"__type__":"tuple","data":[false,false]})");
  // System calls, by x86-64 number.
#ifdef __x86_64__
  is("err(lambda: socket.socket(socket.AF_INET))", "\"EPERM\"");
  is("[err(lambda: socket.socket(f, socket.SOCK_DGRAM)) for f in (1, 10, 16, 17, 38, 40)]",
     R"(["EPERM","EPERM","EPERM","EPERM","EPERM","EPERM"])");
  is("err(lambda: socket.socketpair())", "\"done\"");
  // A datagram pair could be sent to a name that another sandbox was given.
  is("[err(lambda: socket.socketpair(socket.AF_UNIX, t)) for t in (2, 3, 5, 2 | 0x80000)]",
     R"(["EPERM","EPERM","EPERM","EPERM"])");
  is("err(lambda: os.memfd_create('x'))", "\"EPERM\"");  // memory that RLIMIT_AS does not count
  is("sys(165, b'none', b'/tmp', b'tmpfs', 0, 0)", "\"EPERM\"");                 // mount
  is("sys(166, b'/tmp', 0)", "\"EPERM\"");                                       // umount2
  is("sys(155, b'/tmp', b'/tmp')", "\"EPERM\"");                                 // pivot_root
  is("[sys(272, f) for f in (0x10000000, 0x00020000, 0x20000000, 0x40000000)]",  // unshare
     R"(["EPERM","EPERM","EPERM","EPERM"])");
  is("sys(308, 3, 0)", "\"EPERM\"");                        // setns
  is("sys(101, 16, 1, 0, 0)", "\"EPERM\"");                 // ptrace attach
  is("sys(101, 0, 0, 0, 0)", "\"EPERM\"");                  // ptrace traceme
  is("sys(310, 1, 0, 0, 0, 0, 0)", "\"EPERM\"");            // process_vm_readv
  is("sys(56, 0x10000011, 0, 0, 0, 0)", "\"EPERM\"");       // clone(NEWUSER)
  is("sys(435, b'x' * 88, 88)", "\"ENOSYS\"");              // clone3
  is("sys(321, 0, 0, 0)", "\"EPERM\"");                     // bpf
  is("sys(425, 1, 0)", "\"EPERM\"");                        // io_uring_setup
  is("sys(250, 0, 0, 0)", "\"EPERM\"");                     // keyctl
  is("sys(323, 0)", "\"EPERM\"");                           // userfaultfd
  is("sys(29, 0, 4096, 0o1600)", "\"EPERM\"");              // shmget
  is("sys(161, b'/tmp')", "\"EPERM\"");                     // chroot
  is("sys(105, 0)", "\"EPERM\"");                           // setuid
  is("sys(133, b'/tmp/d', 0o60600, 0x0801)", "\"EPERM\"");  // mknod block
  is("sys(302, 1, 7, 0, 0)", "\"EPERM\"");                  // prlimit64 of init
  is("sys(157, 4, 1, 0, 0, 0)", "\"EPERM\"");               // prctl dumpable
  is("err(lambda: os.mkfifo('/tmp/fifo'))", "\"done\"");
  is("err(lambda: os.open('/dev/tty', os.O_RDWR))", "\"ENOENT\"");
#endif
  is("err(lambda: os.kill(1, 9)) in ('EPERM', 'done')", "true");
  is("1 + 1", "2");  // init has not noticed
  // Limits.
  is("err(lambda: open('/tmp/big', 'wb').write(b'x' * (17 << 20)))", "\"ENOSPC\"");
  is("os.remove('/tmp/big') or err(lambda: os.truncate('b', 1 << 40))", "\"EFBIG\"");
  is("import resource\nresource.getrlimit(resource.RLIMIT_CORE)",
     R"({"__type__":"tuple","data":[0,0]})");
  is("import subprocess\nsubprocess.run(['id', '-u'], capture_output=True, text=True).stdout",
     "\"1000\\n\"");
  is("err(lambda: [os.open('/dev/null', 0) for _ in range(100)])", "\"EMFILE\"");
}

}  // namespace

TEST_CASE("code inside meets a wall wherever it turns", "[jail][isolation]") {
  ::setenv("TROUPE_TEST_SECRET", "do not leak", 1);
  jail_fixture fx;
  check_walls(fx);
}

TEST_CASE("what separates a sandbox from the host is told", "[jail][isolation]") {
  jail_fixture fx;
  CHECK(fx.jail->info().isolation.empty());
  auto s = fx.open();
  auto info = fx.jail->info();
  CHECK(info.name == "jail");
  CHECK(info.python.starts_with("3."));
  CHECK(info.isolation == s->isolation());
  CHECK(info.isolation.find("seccomp") != std::string::npos);
  CHECK((::geteuid() == 0) == (info.isolation.find("host uids of its own") != std::string::npos));
  auto groups = jail::cgroup_tree::probe().kind() != jail::cgroup_kind::none;
  CHECK(groups == (info.isolation.find("cgroup v") != std::string::npos));
  CHECK(info.missing.size() == (groups ? 0u : 1u) + (::geteuid() == 0 ? 0u : 1u));
}

TEST_CASE("a fork bomb stays within its limit and dies with the sandbox", "[jail][isolation]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.processes = 20;
  auto s = fx.open(spec);
  auto other = fx.open(spec);
  auto o = fx.run(*s, R"(
import os, time
n = 0
try:
  while True:
    if os.fork() == 0: time.sleep(100)
    n += 1
except BlockingIOError:
  pass
n
)");
  // Without root, the sandbox's first process has the same user and counts too.
  CHECK(tagged(o) == (::geteuid() == 0 ? "19" : "18"));
  CHECK(tagged(fx.run(*other, "import subprocess\nsubprocess.run(['true']).returncode")) == "0");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a foreign system call table kills the process that uses it", "[jail][isolation]") {
#ifdef __x86_64__
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)");  // x32 getpid
  CHECK(o.end == snippet_end::crashed);
  CHECK(o.reason.find("signal 31") != std::string::npos);
#endif
}

TEST_CASE("the same walls stand without root", "[jail][isolation][rootless]") {
  if (::geteuid() != 0)
    SUCCEED("the other cases run without root already");
  else {
    constexpr int unreachable = 5;
    // A reactor's thread does not survive a fork: the child starts from a clean state.
    auto child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0
          || ::setresuid(65534, 65534, 65534) != 0)
        ::_exit(3);
      auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
      if (::access((here / "troupe-zygote").c_str(), X_OK) != 0)
        ::_exit(unreachable);
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else /proc/self belongs to root
      ::execl("/proc/self/exe", "jail_test", "[jail]~[rootless]", static_cast<char*>(nullptr));
      ::_exit(4);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == unreachable)
      SKIP("the build folder is closed to other users");
    CHECK(WEXITSTATUS(status) == 0);
  }
}

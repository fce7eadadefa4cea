// Hostile code that ends in an error of its own: the wall holds, and the sandbox goes on.

#include "tests/jail/attack.hpp"

#include <csignal>

using namespace troupe;
using namespace troupe::test;

TEST_CASE("hostile code that takes all it can get is refused more, and goes on", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"a fork bomb whose children are bombs", R"py(
pids, refused = set(), False
while not refused:
  try:
    pid = os.fork()
    if pid == 0:
      while True:
        try: os.fork()
        except BlockingIOError: time.sleep(600)
    pids.add(pid)
  except BlockingIOError as e:
    refused = True
refused and len(pids) < 40)py"},
    {"threads without end", R"py(
import threading
stop, threads = threading.Event(), []
try:
  while True:
    t = threading.Thread(target=stop.wait)
    t.start()
    threads.append(t)
except RuntimeError as e:
  why = str(e)
stop.set()
for t in threads: t.join()
why == "can't start new thread" and len(threads) < 40)py"},
    {"zombies without end", R"py(
pids = []
try:
  while True:
    pid = os.fork()
    if pid == 0: os._exit(0)
    pids.append(pid)
except BlockingIOError: pass
for pid in pids: os.waitpid(pid, 0)
0 < len(pids) < 40)py"},
    {"orphans without end: init reaps them", R"py(
for _ in range(100):
  pid = os.fork()
  if pid == 0:
    try:
      if os.fork() == 0: os._exit(0)
    except BlockingIOError: pass
    os._exit(0)
  os.waitpid(pid, 0)
True)py"},
    {"memory in pipes", R"py(
held, why = [], None
try:
  while True:
    r, w = os.pipe()
    held += [r, w]
    os.set_blocking(w, False)
    try:
      while True: os.write(w, b"x" * 65536)
    except BlockingIOError: pass
except OSError as e:
  why = e.errno
for fd in held: os.close(fd)
why == errno.EMFILE)py"},
    {"memory in socket pairs", R"py(
held, why = [], None
try:
  while True:
    pair = socket.socketpair()
    held.append(pair)
    for s in pair:
      s.setblocking(False)
      s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
      try:
        while True: s.send(b"x" * 65536)
      except BlockingIOError: pass
except OSError as e:
  why = e.errno
del held, pair, s
why == errno.EMFILE)py"},
    {"a map of 10 GB", R"py(
import mmap
err(mmap.mmap, -1, 10 << 30) == "ENOMEM")py"},
    {"all of /work", R"py(
def fill(path):
  with open(path, "wb", buffering=0) as f:
    while True: f.write(b"x" * (1 << 20))
why = [err(fill, f"/work/{i}") for i in range(3)]
for i in range(3): os.path.exists(f"/work/{i}") and os.remove(f"/work/{i}")
set(why) <= {"ENOSPC", "EFBIG"} and "ENOSPC" in why)py"},
    {"all of /tmp", R"py(
def fill(path):
  with open(path, "wb", buffering=0) as f:
    while True: f.write(b"x" * (1 << 20))
err(fill, "/tmp/x") == "ENOSPC")py"},
    {"all inodes", R"py(
def flood(tree):
  for i in range(100_000): os.close(os.open(f"{tree}/{i}", os.O_CREAT, 0o600))
[err(flood, tree) for tree in ("/work", "/tmp")] == ["ENOSPC", "ENOSPC"])py"},
    {"a sparse terabyte", "err(os.truncate, os.open('/work/x', os.O_CREAT | os.O_WRONLY), 1 << 40)"
                          " == 'EFBIG'"},
    {"an allocated terabyte",
     "err(os.posix_fallocate, os.open('/work/x', os.O_CREAT | os.O_WRONLY), 0, 1 << 40)"
     " == 'EFBIG'"},
    {"all descriptors", "err(lambda: [os.open('/dev/null', 0) for _ in range(1000)]) == 'EMFILE'"},
    {"all signals that may queue", R"py(
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
err(lambda: [sys(129, os.getpid(), 34, ctypes.create_string_buffer(128)) for _ in range(1000)])
signal.sigpending() is not None)py"},
    {"timers without end", R"py(
ids, made = ctypes.c_long(), 0
while made < 100_000 and sys(222, 1, None, ctypes.byref(ids)) == "done": made += 1
made < 1000)py"},
    {"more of each limit", R"py(
import resource
def raise_it(which):
  soft, hard = resource.getrlimit(which)
  if hard == resource.RLIM_INFINITY: return "EPERM"
  try: resource.setrlimit(which, (soft, hard + 1))
  except ValueError: return "EPERM"
  return "done"
{raise_it(r) for r in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE,
                       resource.RLIMIT_CORE, resource.RLIMIT_STACK,
                       resource.RLIMIT_MEMLOCK)} == {"EPERM"})py"},
  };
  sandbox_spec spec;
  spec.limits.processes = 40;
  spec.limits.memory_bytes = 512u << 20;
  try_attacks(attacks, spec);
}

TEST_CASE("hostile code that plays with Python harms nobody but itself", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"nested parentheses", R"py(
def kind(code):
  try: eval(code)
  except BaseException as e: return type(e).__name__
kind("(" * 100_000 + ")" * 100_000) in ("SyntaxError", "MemoryError", "RecursionError"))py"},
    {"recursion", R"py(
def f(): f()
try: f()
except RecursionError: ok = True
ok)py"},
    {"an object that will not die", R"py(
kept = []
class Undead:
  def __del__(self): kept.append(self)
x = Undead()
del x
len(kept) == 1)py"},
    {"a legitimate program: logging", R"py(
import logging, io
out = io.StringIO()
logging.basicConfig(stream=out, level=logging.INFO)
logging.info("said")
"said" in out.getvalue())py"},
    {"a legitimate program: the status of a command",
     "import subprocess\nsubprocess.run(['false']).returncode == 1"},
  };
  try_attacks(attacks);
}

TEST_CASE("code that rewrites its worker rewrites no other's", "[jail][attack]") {
  jail_fixture fx;
  auto s = fx.open();
  auto other = fx.open();
  CHECK(describe(fx.run(*s, R"py(
import builtins, gc, sys
builtins.marked = True
frame = sys._getframe()
while frame:
  frame.f_globals["marked"] = True
  frame = frame.f_back
for o in gc.get_objects(): isinstance(o, dict) and "json" in o and o.setdefault("marked", True)
sys.modules["json"].marked = True)py"))
        == "ok");
  constexpr auto marked = "import builtins, json\nhasattr(builtins, 'marked') or hasattr(json, "
                          "'marked') or 'marked' in globals()";
  CHECK(tagged(fx.run(*s, marked)) == "true");
  CHECK(tagged(fx.run(*other, marked)) == "false");
  CHECK(tagged(fx.run(*fx.open(), marked)) == "false");
  // Its own channel is its own to break.
  fx.run(*s, "sys.modules['json'].dumps = lambda *a, **k: 'x'\n"
             "for m in list(sys.modules.values()):\n"
             "  if 'troupe' in m.__name__ and hasattr(m, 'dumps'): m.dumps = json.dumps");
  CHECK(fx.close(*s).clean());
  CHECK(tagged(fx.run(*other, "1 + 1")) == "2");
}

TEST_CASE("hostile code finds nothing of the host in its files", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"secrets by name", R"py(
{err(open, p) for p in ("/etc/shadow", "/etc/gshadow", "/root/.ssh/id_rsa", "/home", "/run", "/sys",
                        "/var/run/docker.sock", "/boot", "/etc/ssh", "/old", "/proc/kcore",
                        "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/dev/mem",
                        "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/kmsg", "/dev/tty", "/dev/pts",
                        "/dev/fuse", "/dev/net/tun", "/dev/ptmx")} == {"ENOENT"})py"},
    {"what /proc tells of the machine", R"py(
not [n for n in ("cmdline", "meminfo", "kallsyms", "keys", "net", "mounts", "cpuinfo", "version",
                 "modules", "sys", "fs", "bus", "driver", "irq", "diskstats", "interrupts",
                 "kmsg", "config.gz", "partitions", "timer_list", "vmallocinfo")
     if os.path.lexists("/proc/" + n) and os.path.exists("/proc/" + n)])py"},
    {"init's part of /proc", R"py(
({err(lambda: open("/proc/1/" + n).read()) for n in ("environ", "maps", "mem", "cmdline", "exe")
} <= {"ENOENT", "EACCES", "EPERM"} and err(os.listdir, "/proc/1/root") != "done"
and err(os.listdir, "/proc/1/fd") != "done"))py"},
    {"its own memory by file, and its score", R"py(
(err(open, "/proc/self/mem", "wb") in ("EACCES", "EPERM")
and err(lambda: open("/proc/self/oom_score_adj", "w").write("-1000")) in ("EACCES", "EPERM")))py"},
    {"writing where nothing may be written", R"py(
({err(open, p, "w") for p in ("/x", "/usr/x", "/etc/passwd", "/etc/x", "/dev/x", "/proc/x",
                             os.__file__, "/usr/bin/sh")} <= {"EROFS", "EACCES", "ENOENT", "EPERM"}
and err(os.mkdir, "/x") == "EROFS" and err(os.unlink, "/etc/passwd") in ("EROFS", "EACCES")
and err(os.chmod, "/etc/passwd", 0o777) in ("EROFS", "EPERM")
and err(os.utime, "/etc/passwd") in ("EROFS", "EACCES")))py"},
    {"a hard link from /usr", "err(os.link, '/usr/bin/sh', '/work/sh') in ('EXDEV', 'EPERM')"},
    {"renaming a mount", R"py(
(err(os.rename, "/work", "/tmp/x") in ("EXDEV", "EBUSY", "EROFS")
and err(os.rename, "/tmp", "/x") in ("EXDEV", "EBUSY", "EROFS")
and err(os.rmdir, "/work") in ("EBUSY", "EROFS", "EACCES")))py"},
    {"out by a descriptor of the root", R"py(
up = "../" * 50
root = os.open("/", os.O_RDONLY)
os.chdir("/work")
(os.listdir(up) == os.listdir("/") and os.stat(up).st_ino == os.stat("/").st_ino
and err(lambda: os.open(up + "etc/shadow", 0, dir_fd=root)) == "ENOENT"
and err(os.chroot, "/work") == "EPERM" and sys(161, b"/work") == "EPERM"))py"},
    {"links to what is outside", R"py(
for i, to in enumerate(("/etc/shadow", "/proc/1/root/etc/shadow", "../" * 9 + "etc/shadow")):
  os.symlink(to, f"/work/l{i}")
{err(open, f"/work/l{i}") for i in range(3)} <= {"ENOENT", "EACCES", "EPERM"})py"},
    {"device files", R"py(
({sys(133, b"/tmp/d", mode, device) for mode in (0o060666, 0o020666)
 for device in (0x0801, 0x0101, 0x0103)} == {"EPERM"}
and {sys(259, -100, b"/tmp/d", 0o020666, 0x0103)} == {"EPERM"}
and err(lambda: os.mknod("/tmp/plain")) in ("done", "EPERM")))py"},
    {"a program that would run as another user", R"py(
import shutil, subprocess
shutil.copy("/usr/bin/id", "/work/id")
os.chmod("/work/id", 0o6755)
out = subprocess.run(["/work/id", "-u"], capture_output=True, text=True).stdout
out == "1000\n")py"},
    {"an attribute that gives capabilities",
     "err(lambda: os.setxattr('/work', 'security.capability', b'\\x01' * 20)) == 'EPERM'"},
    {"what there is", R"py(
(sorted(set(os.listdir("/etc")) - {"alternatives", "matplotlibrc"})
 == ["group", "hosts", "ld.so.cache", "nsswitch.conf", "passwd"]
 and sorted(os.listdir("/dev")) == ["fd", "full", "null", "random", "shm", "stderr", "stdin",
                                    "stdout", "urandom", "zero"]
 and not [p for p in ("/home", "/root", "/run", "/sys", "/var", "/old", "/boot", "/mnt", "/srv")
          if os.path.exists(p)])
)py"},
    {"what it may write", R"py(
(os.getcwd() == "/work" and open("/tmp/a", "w").write("x") == open("b", "w").write("y") == 1
 and err(os.mkfifo, "/tmp/fifo") == "done"))py"},
    {"the environment and the descriptors", R"py(
(sorted(os.environ) == ["HOME", "LANG", "PATH", "TMPDIR"]
and [f for f in range(256) if err(os.fstat, f) == "done"] == [0, 1, 2, 3, 4]))py"},
  };
  ::setenv("TROUPE_TEST_SECRET", "do not leak", 1);
  try_attacks(attacks);
}

TEST_CASE("hostile code reaches no process but its own", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"killing all others, and the first", R"py(
for target in (1, -1, os.getppid()):
  err(os.kill, target, signal.SIGTERM)
err(os.kill, 1, signal.SIGKILL)
{err(os.kill, pid, 0) for pid in range(20, 3000)} == {"ESRCH"})py"},
    {"freezing or unsettling the first", R"py(
for n in range(1, 65):
  if n not in (9,): err(os.kill, 1, n)
True)py"},
    {"who it is", R"py(
import subprocess
status = {}
for line in open("/proc/self/status"):
  name, _, value = line.strip().partition(":\t")
  status[name] = value
([os.getuid(), os.getgid(), os.getgroups()] == [1000, 1000, []]
 and {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
 and (status["NoNewPrivs"], status["Seccomp"], status["Seccomp_filters"]) == ("1", "2", "1")
 and os.uname().nodename == "sandbox"
 and max(int(p) for p in os.listdir("/proc") if p.isdigit()) < 10
 and subprocess.run(["id", "-u"], capture_output=True, text=True).stdout == "1000\n"))py"},
    {"looking into another", R"py(
child = os.fork()
if child == 0: time.sleep(600)
ok = ({sys(101, 16, pid, 0, 0) for pid in (1, child)} == {"EPERM"}          # ptrace attach
  and sys(101, 0, 0, 0, 0) == "EPERM"                                       # traceme
  and {sys(n, child, 0, 0, 0, 0, 0) for n in (310, 311)} == {"EPERM"}       # process_vm
  and sys(434, child, 0) == "EPERM" and sys(438, 3, 0, 0) == "EPERM"        # pidfd_open, getfd
  and sys(424, 3, 9, 0, 0) == "EPERM"                                       # pidfd_send_signal
  and sys(312, child, child, 0, 0, 0) == "EPERM")                           # kcmp
os.kill(child, 9)
os.waitpid(child, 0)
ok)py"},
    {"better places in the queue", R"py(
(sys(141, 0, 0, -5) == "EPERM" and err(os.nice, -5) == "EPERM"
and err(os.sched_setaffinity, 0, {0}) == "EPERM"
and sys(144, 0, 1, ctypes.byref(ctypes.c_int(1))) == "EPERM"
and sys(314, 0, 0, 0) == "EPERM" and sys(251, 1, 0, 0) == "EPERM"))py"},
    {"memory and messages shared by key", R"py(
{sys(29, 0, 4096, 0o1600), sys(64, 0, 1, 0o1600), sys(68, 0, 0o1600), sys(30, 0, 0, 0),
 sys(240, b"/q", 0o102, 0o600, 0)} == {"EPERM"})py"},
  };
  try_attacks(attacks);
}

TEST_CASE("hostile code meets no network", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"sockets of every family", R"py(
({err(lambda: socket.socket(family, kind)) for family in range(0, 46) for kind in (1, 2, 3, 5)}
== {"EPERM"}))py"},
    {"connections, by name and by number", R"py(
def connect(host, port):
  socket.create_connection((host, port), timeout=5)
({err(connect, host, port) for host, port in (("127.0.0.1", 22), ("169.254.169.254", 80), ("::1", 22))}
== {"EPERM"}))py"},
    {"an abstract name", R"py(
a, b = socket.socketpair()
{sys(49, a.fileno(), b"\x01\0\0x", 4), sys(42, a.fileno(), b"\x01\0\0x", 4),
 sys(50, a.fileno(), 1), sys(43, a.fileno(), 0, 0)} == {"EPERM"})py"},
    // A datagram pair could be sent to a name that another sandbox was given.
    {"pairs that are no streams", R"py(
(err(socket.socketpair) == "done"
 and {err(socket.socketpair, socket.AF_UNIX, t) for t in (2, 3, 5, 2 | 0x80000)} == {"EPERM"}))py"},
    {"a message with an address, on a pair", R"py(
a, b = socket.socketpair()
sys(44, a.fileno(), b"x", 1, 0, b"\x01\0\0name", 7) in ("EISCONN", "EOPNOTSUPP", "EINVAL"))py"},
  };
  try_attacks(attacks);
}

TEST_CASE("hostile code is denied the calls that it has no need of", "[jail][attack]") {
  constexpr attack attacks[] = {
    {"mounts", R"py(
{sys(165, b"none", b"/tmp", b"tmpfs", 0, 0), sys(165, 0, b"/", 0, 0x1000 | 0x20, 0),
 sys(166, b"/tmp", 0), sys(166, b"/proc", 2), sys(155, b"/tmp", b"/tmp"), sys(428, -100, b"/", 0),
 sys(429, 3, b"", -100, b"/tmp", 4), sys(430, b"tmpfs", 0), sys(431, 3, 0, 0, 0, 0),
 sys(432, 3, 0, 0), sys(433, -100, b"/", 0), sys(442, -100, b"/", 0, 0, 0),
 sys(457, 0, 0, 0, 0), sys(458, 0, 0, 0, 0)} <= {"EPERM", "ENOSYS"})py"},
    {"namespaces", R"py(
flags = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
({sys(272, f) for f in flags + (0x80,)} == {"EPERM"}
and {sys(56, f | 17, 0, 0, 0, 0) for f in flags} == {"EPERM"}
and sys(308, os.open("/proc/self/ns/user", 0), 0) == "EPERM"
and sys(435, ctypes.create_string_buffer(88), 88) == "ENOSYS"))py"},
    {"the rest of the kernel's doors", R"py(
calls = {"add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "userfaultfd": 323,
  "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "perf_event_open": 298,
  "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313,
  "delete_module": 176, "quotactl": 179, "reboot": 169, "swapon": 167, "swapoff": 168,
  "sethostname": 170, "setdomainname": 171, "settimeofday": 164, "clock_settime": 227,
  "adjtimex": 159, "clock_adjtime": 305, "iopl": 172, "ioperm": 173, "modify_ldt": 154,
  "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304, "kcmp": 312,
  "acct": 163, "syslog": 103, "vmsplice": 278, "splice": 275, "tee": 276, "mbind": 237,
  "set_mempolicy": 238, "migrate_pages": 256, "move_pages": 279, "mlock": 149, "mlockall": 151,
  "setuid": 105, "setgid": 106, "setreuid": 113, "setresuid": 117, "setgroups": 116,
  "setfsuid": 122, "capset": 126, "seccomp": 317, "landlock_create_ruleset": 444,
  "landlock_restrict_self": 446, "memfd_create": 319, "memfd_secret": 447, "pkey_alloc": 330,
  "process_madvise": 440, "process_mrelease": 448, "lookup_dcookie": 212, "vhangup": 153,
  "uselib": 134, "ustat": 136, "sysfs": 139, "nfsservctl": 180, "set_mempolicy_home_node": 450,
  "remap_file_pages": 216, "mseal": 462, "listmount": 458, "personality": 135}
got = {name: sys(number, 1, 2, 3, 4, 5, 6) for name, number in calls.items()}
open_doors = {name: why for name, why in got.items() if why not in ("EPERM", "ENOSYS")}
print(open_doors)
not open_doors)py"},
    {"typing into a terminal, and other controls", R"py(
import fcntl
{sys(16, 1, request, b"x") for request in (0x5412, 0x541c, 0x5410, 0x540e, 0x8901, 0x8902, 0x8910,
                                         0x5421 | 1 << 33)} == {"EPERM"})py"},
    {"traits of its process", R"py(
({sys(157, option, 1, 0, 0, 0) for option in (4, 8, 22, 24, 28, 35, 36, 38, 47, 59)} == {"EPERM"}
and sys(135, 0x0040000) == "EPERM" and sys(302, 1, 7, 0, 0) == "EPERM"))py"},
    {"numbers beyond the table",
     "{sys(n) for n in (600, 1000, 0x3fffffff)} <= {'EPERM', 'ENOSYS'}"},
  };
  try_attacks(attacks);
}

TEST_CASE("a runtime that ignores the ends of its children does not pass that on",
          "[jail][attack]") {
  auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    jail_fixture fx;
    auto s = fx.open();
    CHECK(tagged(fx.run(*s, "import subprocess\nsubprocess.run(['sh', '-c', 'exit 3']).returncode"))
          == "3");
    CHECK(fx.run(*s, "import os\nos._exit(7)").end == snippet_end::exited);
  }
  ::signal(SIGCHLD, before);
}

// Hostile code that can only be killed: it is, in time, and with checkpoints its variables are as
// they were before it.

#include "tests/jail/attack.hpp"

#include <chrono>
#include <optional>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Generous: the machine may be busy. The promise is 100 ms on a quiet one.
constexpr std::chrono::seconds tolerance{5};

struct deadly {
  const char* what;
  const char* code;
  std::optional<snippet_end> end;  ///< none: the machine decides
  const char* reason = "";         ///< found in the outcome's
  millis hard_limit = millis{20'000};
};

std::chrono::milliseconds since(time_point start) {
  return std::chrono::duration_cast<millis>(steady_clock::now() - start);
}

void check_end(const deadly& d, const snippet_outcome& o) {
  INFO(describe(o) << "\n" << o.logs);
  if (d.end)
    CHECK(o.end == *d.end);
  CHECK(o.reason.find(d.reason) != std::string::npos);
}

void check_gone(jail_fixture& fx, sandbox& s) {
  auto report = fx.close(s);
  CHECK(report.clean());
  CHECK(report.detail.empty());
}

/// Each without checkpoints, where it is the end, and with them, where it is not.
void try_deadly(std::span<const deadly> attacks, const sandbox_spec& spec = {}) {
  for (auto checkpoints : {false, true}) {
    jail_fixture fx;
    fx.checkpoints = checkpoints;
    for (const auto& d : attacks) {
      INFO(d.what << (checkpoints ? ", with checkpoints" : ", without checkpoints"));
      auto s = fx.open(spec);
      REQUIRE(describe(fx.run(*s, std::string{attack_tools} + "kept = 5")) == "ok");
      auto deadline = steady_clock::now() + d.hard_limit;
      auto o = fx.run(*s, snippet{.code = d.code, .hard_deadline = deadline});
      CHECK(since(deadline) < tolerance);
      check_end(d, o);
      auto survived = o.end == snippet_end::raised;  // some that the machine decides
      CHECK(o.restored == (checkpoints && !survived));
      if (o.restored || survived)
        CHECK(tagged(fx.run(*s, "kept")) == "5");
      check_gone(fx, *s);
    }
  }
}

}  // namespace

TEST_CASE("code that hangs is killed at its hard deadline", "[jail][attack]") {
  constexpr auto end = snippet_end::hard_timeout;
  constexpr deadly attacks[] = {
    {"a loop that heeds no signal",
     "for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)"
     "\n  except (OSError, ValueError): pass\nwhile True: pass",
     end, "", 300ms},
    {"a loop that blocks all signals",
     "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass", end, "", 300ms},
    {"a sum in C", "sum(range(10**12))", end, "", 300ms},
    {"a regular expression", "import re\nre.match('(a+)+b', 'a' * 60)", end, "", 300ms},
    {"a power", "10**10**8", end, "", 300ms},
    {"the digits of a huge number",
     "import sys as system\nsystem.set_int_max_str_digits(0)\nstr(1 << 50_000_000)", end, "",
     300ms},
    {"sleep for ever", "while True: time.sleep(3600)", end, "", 300ms},
    {"a stopped process", "os.kill(os.getpid(), signal.SIGSTOP)", end, "", 300ms},
    {"an endless repr", "class C:\n  def __repr__(self):\n    while True: pass\nC()", end, "",
     300ms},
    {"an endless repr in an exception",
     "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E()", end, "", 300ms},
    {"part of a frame", "os.write(3, b'\\0\\0\\1\\0{')\nwhile True: time.sleep(3600)", end, "",
     300ms},
    {"a lock that is held",
     "import threading\nl = threading.Lock()\nl.acquire()\nwhile True:\n  try: l.acquire()\n"
     "  except KeyboardInterrupt: pass",
     end, "", 300ms},
    {"reading what nobody sends", "while True:\n  if not os.read(3, 1): time.sleep(1)", end, "",
     300ms},
  };
  try_deadly(attacks);
}

TEST_CASE("code that ends its interpreter is told by its status", "[jail][attack]") {
  constexpr deadly attacks[] = {
    {"segfault", "ctypes.string_at(0)", snippet_end::crashed, "signal 11"},
    {"abort", "os.abort()", snippet_end::crashed, "signal 6"},
    {"exit", "os._exit(7)", snippet_end::exited, "exit status 7"},
    {"an alarm", "signal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True: time.sleep(1)",
     snippet_end::crashed, "signal 14"},
    {"killing itself", "os.kill(os.getpid(), 9)", snippet_end::crashed, ""},
    {"a stack without bound",
     "import sys as system\nsystem.setrecursionlimit(10**9)\nx = []\n"
     "for _ in range(10**7): x = [x]\nimport copy\ncopy.deepcopy(x)",
     std::nullopt, ""},
#ifdef __x86_64__
    {"the 32-bit table of calls", R"py(
import mmap
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(b"\xb8\x14\0\0\0\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())py",
     snippet_end::crashed, ""},
    {"the x32 table of calls", "libc.syscall(0x40000000 + 39)", snippet_end::crashed, "signal 31"},
#endif
  };
  try_deadly(attacks);
}

TEST_CASE("code that writes without end is stopped", "[jail][attack]") {
  constexpr auto end = snippet_end::output_limit;
  constexpr deadly attacks[] = {
    {"print", "while True: print('x' * 100_000)", end},
    {"raw writes", "b = b'x' * 65536\nwhile True: os.write(1, b)", end},
    {"200 MB at once", "print('x' * 200_000_000)", end},
    {"a child's", "import subprocess\nsubprocess.run(['yes'])", end},
  };
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  try_deadly(attacks, spec);
}

TEST_CASE("code that meddles with its channel is ended, and asked for nothing more",
          "[jail][attack]") {
  constexpr auto frame = "def frame(b): os.write(3, len(b).to_bytes(4, 'big') + b)\n";
  constexpr const char* attacks[] = {
    "frame(b'garbage')\ntime.sleep(3)",
    "os.write(3, b'\\xff\\xff\\xff\\xff')\ntime.sleep(3)",
    "socket.socket(fileno=3).shutdown(socket.SHUT_RDWR)\ntime.sleep(3)",
    // A descriptor with the bytes: the runtime takes none.
    "s = socket.socket(fileno=3)\nsocket.send_fds(s, [b'\\0\\0\\0\\2{}'], [0, 1, "
    "2])\ntime.sleep(3)",
    // A thousand replies ahead.
    "def reply(id): return b'{\"op\": \"done\", \"id\": %d, \"end\": \"ok\"}' % id\n"
    "whole = [len(reply(i)).to_bytes(4, 'big') + reply(i) for i in range(2, 1002)]\n"
    "os.write(3, b''.join(whole))\n"
    "time.sleep(3)",
  };
  for (auto checkpoints : {false, true}) {
    jail_fixture fx;
    fx.checkpoints = checkpoints;
    for (auto* code : attacks) {
      INFO(code << (checkpoints ? ", with checkpoints" : ""));
      auto s = fx.open();
      fx.run(*s, attack_tools + std::string{frame});
      auto start = steady_clock::now();
      auto o = fx.run(*s, code);
      INFO(describe(o));
      CHECK(o.end == snippet_end::protocol);
      CHECK(since(start) < tolerance + 3s);
      CHECK(!s->run(snippet{.code = "1"}, [](const snippet_outcome&) {}));
      check_gone(fx, *s);
    }
  }
}

TEST_CASE("code that closes its channel is ended, or goes back to where the channel was open",
          "[jail][attack]") {
  for (auto checkpoints : {false, true}) {
    jail_fixture fx;
    fx.checkpoints = checkpoints;
    for (auto* code : {"os.closerange(0, 64)\ntime.sleep(1)", "os.closerange(0, 64)\n1 / 0",
                       "os.dup2(os.open('/dev/null', os.O_RDWR), 3)\ntime.sleep(1)"}) {
      INFO(code << (checkpoints ? ", with checkpoints" : ""));
      auto s = fx.open();
      fx.run(*s, std::string{attack_tools} + "kept = 5");
      auto o = fx.run(*s, code);
      INFO(describe(o));
      CHECK((o.end == snippet_end::exited || o.end == snippet_end::protocol));
      if (o.restored)
        CHECK(tagged(fx.run(*s, "kept")) == "5");
      else
        CHECK(!s->run(snippet{.code = "1"}, [](const snippet_outcome&) {}));
      check_gone(fx, *s);
    }
  }
}

TEST_CASE("code that takes all descriptors takes them from nobody else", "[jail][attack]") {
  for (auto checkpoints : {false, true}) {
    jail_fixture fx;
    fx.checkpoints = checkpoints;
    auto s = fx.open();
    constexpr auto take_all = "import os\nfds = []\ntry:\n"
                              "  while True: fds.append(os.open('/dev/null', 0))\n"
                              "except OSError: pass\nlen(fds) > 9";
    CHECK(tagged(fx.run(*s, take_all)) == "true");
    auto o = fx.run(*s, "1 + 1");
    CHECK(tagged(o) == "2");
    CHECK(o.unprotected == (checkpoints ? "Too many open files" : ""));
    auto failed = fx.sh(*s, "true");
    CHECK(failed.end == shell_end::not_started);
    CHECK(fx.put(*s, "f", "x").error().code == errc::over_budget);
    CHECK(!fx.get(*s, "f"));
    CHECK(!fx.fork(*s, {{}}).front());
    CHECK(tagged(fx.run(*s, "for fd in fds: os.close(fd)\nlen(fds) > 9")) == "true");
    CHECK(describe(fx.sh(*s, "true")) == "exited 0");
    CHECK(fx.put(*s, "f", "x"));
    CHECK(fx.fork(*s, {{}}).front());
    check_gone(fx, *s);
  }
}

TEST_CASE("a frame that comes after the answer ends the sandbox", "[jail][attack]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, R"py(
import os, threading, time
def late():
  time.sleep(0.05)
  b = b'{"op": "done", "id": 1, "end": "ok"}'
  os.write(3, len(b).to_bytes(4, "big") + b)
threading.Thread(target=late, daemon=True).start())py");
  CHECK(o.end == snippet_end::ok);
  for (int i = 0; i < 1'000 && fx.jail->stats().live > 0; ++i)
    fx.pause(5ms);
  CHECK(fx.jail->stats().live == 0);
  check_gone(fx, *s);
}

TEST_CASE("a thread that steals the next request loses only its own sandbox's", "[jail][attack]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(fx.run(*s, "import os, threading\ndef steal():\n  while True: os.read(3, 65536)\n"
                   "threading.Thread(target=steal, daemon=True).start()")
          .end
        == snippet_end::ok);
  auto deadline = steady_clock::now() + 500ms;
  auto o = fx.run(*s, snippet{.code = "1", .hard_deadline = deadline});
  CHECK((o.end == snippet_end::hard_timeout || o.end == snippet_end::ok));
  CHECK(since(deadline) < tolerance);
  check_gone(fx, *s);
}

TEST_CASE("a work directory that the code has closed is told, and the sandbox lives on",
          "[jail][attack]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import os\nos.chmod('/work', 0)")) == "ok");
  CHECK(fx.put(*s, "f", "x").error().code == errc::denied);
  CHECK(fx.get(*s, "f").error().code == errc::denied);
  CHECK(fx.sh(*s, "true").end == shell_end::not_started);
  CHECK(describe(fx.run(*s, "os.chmod('/work', 0o700)")) == "ok");
  CHECK(fx.put(*s, "f", "x"));
  check_gone(fx, *s);
}

#include "executors/jail/cgroup.hpp"
#include "tests/jail/jail_fixture.hpp"

#include <thread>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct checkpoint_fixture : jail_fixture {
  checkpoint_fixture() { checkpoints = true; }

  snippet_outcome run_for(sandbox& s, std::string code, millis limit) {
    return run(
      s, snippet{.code = std::move(code), .hard_deadline = after(steady_clock::now(), limit)});
  }
};

void check_restored(const snippet_outcome& o, snippet_end end) {
  INFO(describe(o));
  CHECK(o.end == end);
  CHECK(o.restored);
  CHECK(lives_on(o));
}

}  // namespace

TEST_CASE("code that is killed at its hard deadline leaves the variables as they were",
          "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = [1, 2]")) == "ok");
  for (auto* code :
       {"x.append(3)\nwhile True: pass", "x = 0\nsum(range(10**12))",
        "from signal import *\nx = 0\npthread_sigmask(SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "import os, signal\nx = 0\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import os\nx = 0\nos.write(3, b'\\0\\0')\nwhile True: pass"}) {
    INFO(code);
    auto start = steady_clock::now();
    check_restored(fx.run_for(*s, code, 1s), snippet_end::hard_timeout);  // it began long before
    CHECK(steady_clock::now() - start < 5s);
    CHECK(tagged(fx.run(*s, "x")) == "[1,2]");
  }
  CHECK(fx.close(*s).clean());
}

TEST_CASE("code that ends its interpreter leaves the variables as they were",
          "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = {'a': 1}\ndef f(): return x")) == "ok");
  check_restored(fx.run(*s, "x['b'] = 2\nimport os\nos._exit(7)"), snippet_end::exited);
  check_restored(fx.run(*s, "import ctypes\nx = 0\nctypes.string_at(0)"), snippet_end::crashed);
  check_restored(fx.run(*s, "import os\nx = 0\nos.abort()"), snippet_end::crashed);
  check_restored(fx.run(*s, "import os\nx = 0\nos.kill(os.getpid(), 9)"), snippet_end::crashed);
  CHECK(tagged(fx.run(*s, "f()")) == R"({"a":1})");
  CHECK(tagged(fx.run(*s, "import subprocess\nsubprocess.run(['true']).returncode")) == "0");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("code that runs out of memory leaves the variables as they were", "[jail][checkpoint]") {
  if (jail::cgroup_tree::probe().kind() == jail::cgroup_kind::none)
    SKIP("no control groups here");
  checkpoint_fixture fx;
  sandbox_spec spec;
  spec.limits.memory_bytes = 200u << 20;
  auto s = fx.open(spec);
  CHECK(describe(fx.run(*s, "x = 1")) == "ok");
  for (int i = 0; i < 3; ++i) {
    auto o = fx.run(*s, R"(
import os, time
x = 2
for _ in range(20):
  if os.fork() == 0:
    hog = bytearray(b'x') * (40 << 20)
    time.sleep(60)
time.sleep(60)
)");
    check_restored(o, snippet_end::memory);
    CHECK(tagged(fx.run(*s, "x")) == "1");
  }
  CHECK(fx.close(*s).clean());
}

TEST_CASE("what the code printed before it was killed is kept, and more is not",
          "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  auto o = fx.run_for(*s, "print('before')\nwhile True: pass", 1s);
  check_restored(o, snippet_end::hard_timeout);
  CHECK(o.logs == "before\n");
  check_restored(fx.run(*s, "while True: print('x' * 1000)"), snippet_end::output_limit);
  auto next = fx.run(*s, "print('after')");
  CHECK(next.logs == "after\n");
}

TEST_CASE("nothing that a killed snippet started goes on", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  auto o = fx.run_for(*s, R"(
import os, time
try:
  for _ in range(10):
    if os.fork() == 0:
      os.setsid()
      while True:
        if os.fork() == 0: time.sleep(100)
        time.sleep(0.01)
except BlockingIOError:
  pass  # the children were quicker
time.sleep(60)
)",
                      600ms);
  check_restored(o, snippet_end::hard_timeout);
  CHECK(tagged(fx.run(*s, "import os\nsum(p.isdigit() for p in os.listdir('/proc')) < 4"))
        == "true");
  // Its limit of processes is whole again: 64, less the worker and this snippet's checkpoint.
  auto left = fx.run(*s, R"(
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
  CHECK(tagged(left) == (::geteuid() == 0 ? "62" : "61"));
}

TEST_CASE("tool calls go on after the session went back", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  sandbox_spec spec;
  spec.tools = {make_tool("echo", {"x"}), make_tool("hang", {})};
  auto s = fx.open(spec);
  s->listen({}, [weak = std::weak_ptr{s}](code_call call) {
    if (auto live = weak.lock(); live && call.tool == "echo")
      live->answer(call.id, call.arguments.at("x"));
  });
  CHECK(tagged(fx.run(*s, "y = echo(1)\ny")) == "1");
  check_restored(fx.run_for(*s, "y = 2\nhang()", 1s), snippet_end::hard_timeout);
  CHECK(tagged(fx.run(*s, "[y, echo('again')]")) == R"([1,"again"])");
}

TEST_CASE("with other threads there is no checkpoint, and the outcome says so",
          "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "import threading\ngo = threading.Event()\n"
                      "t = threading.Thread(target=go.wait, daemon=True)\nt.start()");
  CHECK(o.unprotected.empty());
  o = fx.run(*s, "1 + 1");
  CHECK(tagged(o) == "2");
  CHECK(o.unprotected == "other threads are running, which a copy would lose");
  o = fx.run_for(*s, "while True: pass", 1s);
  CHECK(o.end == snippet_end::hard_timeout);
  CHECK(!o.restored);
  CHECK(fx.close(*s).clean());
}

TEST_CASE("code that meddles with its checkpoint loses it, no more", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  for (auto* meddle :
       {"import os\nos.kill(-1, 9)", "import os\nos.close(4)", "import os\nos.write(4, b'1234')",
        "import os\nos.write(4, (1).to_bytes(4, 'little'))",
        "import os\nos.write(4, (99999).to_bytes(4, 'little'))",
        "import os\nos.write(4, os.getpid().to_bytes(4, 'little'))"}) {
    INFO(meddle);
    auto s = fx.open();
    fx.run(*s, "x = 1");
    auto o = fx.run_for(*s, std::string{meddle} + "\nwhile True: pass", 1s);
    INFO(describe(o));
    CHECK(!survives(o.end));
    if (o.restored)
      CHECK(tagged(fx.run(*s, "x")) == "1");
    CHECK(fx.close(*s).clean());
  }
}

TEST_CASE("a checkpoint that is dying is not gone back to", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  constexpr const char* ends[] = {
    "import os\nos.kill(-1, 9)\nos._exit(0)",
    // What it says in the checkpoint's name lies behind empty messages.
    R"(
import os, socket
child = os.fork()
if child == 0: os._exit(0)
init = socket.socket(fileno=4)
for _ in range(50):
  init.send(b'')
  init.send((child - 1).to_bytes(4, 'little'))
os.kill(-1, 9)
os._exit(0))",
  };
  for (int i = 0; i < 20; ++i)
    for (auto* end : ends) {
      auto s = fx.open();
      fx.run(*s, "ballast = b'x' * 20_000_000");  // its death takes a moment
      auto o = fx.run(*s, end);
      INFO(describe(o));
      CHECK(o.end == snippet_end::exited);
      CHECK(!o.restored);
      CHECK(fx.close(*s).clean());
    }
}

TEST_CASE("a checkpoint waits on a socket that the code has made impatient", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  fx.run(*s, "import os, socket\nx = 1\nos.set_blocking(4, False)");
  check_restored(fx.run(*s, "x = 2\nos._exit(0)"), snippet_end::exited);
  fx.run(*s, "socket.socket(fileno=os.dup(4)).settimeout(0.01)");
  check_restored(fx.run(*s, "x = 3\nos._exit(0)"), snippet_end::exited);
  CHECK(tagged(fx.run(*s, "x")) == "1");
}

TEST_CASE("a checkpoint that lives a moment longer takes no branch's pipe", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  fx.run(*s, "import _troupe, time\nx = 1\ndrop = _troupe.drop\n"
             "_troupe.drop = lambda *a: (time.sleep(0.3), drop(*a))");
  auto branch = std::move(fx.fork(*s, {{}}).front());
  REQUIRE(branch);
  CHECK(tagged(fx.run(**branch, "x")) == "1");
}

TEST_CASE("between snippets there is no checkpoint to go back to", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  fx.run(*s, R"(
import os, signal, socket, time
worker = os.getpid()
if os.fork() == 0:
  time.sleep(0.1)
  init = socket.socket(fileno=4)
  init.send(os.getpid().to_bytes(4, 'little'))
  os.kill(worker, 9)
  while True:
    if init.recv(9) == b'C':
      init.send(os.getpid().to_bytes(4, 'little')))");
  std::this_thread::sleep_for(500ms);
  auto refused = s->run(snippet{.code = "1"}, [](const snippet_outcome&) {});
  CHECK(!refused);
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a sandbox goes back as often as its code is killed", "[jail][checkpoint]") {
  checkpoint_fixture fx;
  auto s = fx.open();
  for (int i = 0; i < 20; ++i) {
    CHECK(describe(fx.run(*s, "n = " + std::to_string(i))) == "ok");
    check_restored(fx.run(*s, "n = -1\nimport os\nos._exit(0)"), snippet_end::exited);
    CHECK(tagged(fx.run(*s, "n")) == std::to_string(i));
  }
}

#include "tests/executors/contract/contract.hpp"

#include <cstdlib>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

CONTRACT_CASE("the value of the last expression is the result", "[snippet]") {
  auto s = fx.open();
  auto o = fx.run(*s, "x = 20\nx * 2 + 2");
  CHECK(describe(o) == "ok");
  CHECK(tagged(o) == "42");
  CHECK(o.result->text == "42");
  CHECK(!o.is_final);
  CHECK(!fx.run(*s, "y = 1").result);
  CHECK(tagged(fx.run(*s, "None")) == "null");
  CHECK(!fx.run(*s, "").result);
}

CONTRACT_CASE("a line alone is read as any other code is", "[snippet]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "6 * 7  # a remark")) == "42");
  CHECK(tagged(fx.run(*s, "1; 2")) == "2");
  CHECK(describe(fx.run(*s, " 1 + 1")).starts_with("raised IndentationError: unexpected indent"));
  CHECK(describe(fx.run(*s, "\t1 + 1")).starts_with("raised IndentationError: unexpected indent"));
  CHECK(!fx.run(*s, "import math").result);
  CHECK(tagged(fx.run(*s, "(square := 3 * 3)")) == "9");
  CHECK(tagged(fx.run(*s, "square")) == "9");
  CHECK(describe(fx.run(*s, "square +")).starts_with("raised SyntaxError: invalid syntax"));
  auto o = fx.run(*s, "square / 0");
  REQUIRE(o.error);
  CHECK(o.error->line == 1);
  CHECK(o.error->traceback.find("square / 0") != std::string::npos);
}

CONTRACT_CASE("variables, functions, classes and imports are there in the next snippet",
              "[snippet]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import math\nn = 3\nclass C:\n  k = 5\n"
                            "def f(k):\n  global n\n  n += k\n  return n"))
        == "ok");
  CHECK(tagged(fx.run(*s, "f(4) + math.floor(0.5) + C.k")) == "12");
  CHECK(tagged(fx.run(*s, "n")) == "7");
  fx.run(*s, "del n");
  CHECK(describe(fx.run(*s, "n")) == "raised NameError: name 'n' is not defined");
}

CONTRACT_CASE("what ran before an exception counts", "[snippet]") {
  auto s = fx.open();
  fx.run(*s, "a = 1\nb = 1 / 0\nc = 1");
  CHECK(tagged(fx.run(*s, "[a, 'b' in globals(), 'c' in globals()]")) == "[1,false,false]");
}

CONTRACT_CASE("another sandbox sees nothing of it", "[snippet]") {
  auto a = fx.open();
  auto b = fx.open();
  CHECK(describe(fx.run(*a, "import os, tempfile\nsecret = 1\nopen('x', 'w').write('1')\n"
                            "open(os.path.join(tempfile.gettempdir(), 'y'), 'w').write('1')"))
        == "ok");
  CHECK(describe(fx.run(*b, "secret")) == "raised NameError: name 'secret' is not defined");
  CHECK(
    tagged(fx.run(*b, "import os, tempfile\nos.listdir('.') + os.listdir(tempfile.gettempdir())"))
    == "[]");
}

CONTRACT_CASE(
  "the work directory is the home and the current one, the other is for temporary files",
  "[snippet]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import os, tempfile\n"
                          "[os.path.samefile('.', os.environ['HOME']),\n"
                          " tempfile.gettempdir() == os.environ['TMPDIR'],\n"
                          " os.path.samefile(os.environ['TMPDIR'], '.'), __name__]"))
        == R"([true,true,false,"__main__"])");
  CHECK(tagged(fx.run(*s, "with tempfile.TemporaryFile() as f: n = f.write(b'abc')\nn")) == "3");
}

CONTRACT_CASE("the code has four variables of environment and no descriptor but its worker's",
              "[snippet]") {
  ::setenv("TROUPE_TEST_SECRET", "do not leak", 1);
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import os\nsorted(os.environ)"))
        == R"(["HOME","LANG","PATH","TMPDIR"])");
  CHECK(tagged(fx.run(
          *s, "def is_open(f):\n  try: return bool(os.fstat(f))\n"
              "  except OSError: return False\n[f for f in range(64) if f != 4 and is_open(f)]"))
        == "[0,1,2,3]");
}

CONTRACT_CASE("there is no input", "[snippet]") {
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "input()")) == "raised EOFError: EOF when reading a line");
  CHECK(tagged(fx.run(*s, "import sys\nsys.stdin.read()")) == R"("")");
}

CONTRACT_CASE("Python is whole: decorators, star targets, walrus, generators, classes",
              "[snippet]") {
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, R"py(
import functools

@functools.lru_cache(maxsize=None)
def fib(n):
  return n if n < 2 else fib(n - 1) + fib(n - 2)

class C:
  @property
  def x(self): return {**{"a": 1}, "b": 2}

first, *rest = [1, 2, 3]
if (n := len(rest)) == 2: pass
[fib(30), C().x["b"], rest, n, list(x * x for x in range(3))]
)py")) == "[832040,2,[2,3],2,[0,1,4]]");
}

CONTRACT_CASE("subprocesses, threads, asyncio and multiprocessing work inside", "[snippet]") {
  auto s = fx.open();
  auto o = fx.run(*s, R"py(
import asyncio, multiprocessing, subprocess, sys, concurrent.futures as cf

def square(x): return x * x

async def wait():
  await asyncio.sleep(0.001)
  return "slept"

with cf.ThreadPoolExecutor(4) as pool:
  threads = list(pool.map(square, range(4)))
with multiprocessing.get_context("fork").Pool(2) as pool:
  processes = pool.map(square, range(4))
code = subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode
[threads, processes, asyncio.run(wait()), code]
)py");
  INFO(describe(o) << o.logs);
  CHECK(tagged(o) == R"([[0,1,4,9],[0,1,4,9],"slept",3])");
}

CONTRACT_CASE("a child that the snippet forks cannot answer for it", "[snippet]") {
  auto s = fx.open();
  auto o = fx.run(
    *s, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'");
  CHECK(tagged(o) == "\"parent\"");
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("sets iterate in the same order in each sandbox, random numbers differ",
              "[snippet]") {
  auto a = fx.open();
  auto b = fx.open();
  auto order = "list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})";
  CHECK(tagged(fx.run(*a, order)) == tagged(fx.run(*b, order)));
  auto number = "import random\nrandom.random()";
  CHECK(tagged(fx.run(*a, number)) != tagged(fx.run(*b, number)));
}

CONTRACT_CASE("usage says what a snippet took", "[snippet]") {
  auto s = fx.open();
  auto o = fx.run(
    *s, "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass");
  CHECK(o.usage.cpu >= 90ms);
  CHECK(o.usage.wall >= 90ms);
  CHECK(o.usage.max_rss_bytes > (1u << 20));
  CHECK(o.usage.tool_calls == 0);
  CHECK(fx.run(*s, "1").usage.cpu < 90ms);
}

CONTRACT_CASE("one thing at a time: a second one is refused, not queued", "[snippet]") {
  auto s = fx.open();
  std::promise<snippet_outcome> first;
  std::promise<void> started;
  s->listen([&](std::string_view) { started.set_value(); }, {});
  REQUIRE(s->run({.code = "import time\nprint('go')\ntime.sleep(0.3)\n'first'"},
                 [&](snippet_outcome o) { first.set_value(std::move(o)); }));
  started.get_future().wait();
  auto is_busy = [](const result<void>& r) {
    return !r && r.error().code == errc::invalid_argument;
  };
  CHECK(is_busy(s->run({.code = "2"}, [](const snippet_outcome&) { FAIL("never accepted"); })));
  CHECK(is_busy(s->put({"f", "x"}, [](const result<void>&) { FAIL("never accepted"); })));
  CHECK(is_busy(s->get("f", 9, [](const result<std::string>&) { FAIL("never accepted"); })));
  CHECK(is_busy(s->shell({.argv = {"ls"}}, [](const shell_outcome&) { FAIL("never accepted"); })));
  CHECK(tagged(first.get_future().get()) == "\"first\"");
  CHECK(tagged(fx.run(*s, "2")) == "2");
}

CONTRACT_CASE("what is called back runs on the reactor's thread, and may ask for the next thing",
              "[snippet]") {
  auto s = fx.open();
  std::promise<bool> all;
  REQUIRE(s->run({.code = "1"}, [&](const snippet_outcome&) {
    auto right = fx.io.on_thread();
    auto next = s->put({"f", "x"}, [&, right](const result<void>& put) {
      auto got = s->get("f", 9, [&, right = right && put.has_value()](const auto& bytes) {
        all.set_value(right && fx.io.on_thread() && bytes.value() == "x");
      });
      if (!got)
        all.set_value(false);
    });
    if (!next)
      all.set_value(false);
  }));
  CHECK(all.get_future().get());
}

CONTRACT_CASE("what separates it from the host is told, and the same everywhere", "[snippet]") {
  auto s = fx.open();
  auto info = fx.backend->info();
  CHECK(!info.name.empty());
  CHECK(info.python.starts_with("3."));
  CHECK(!info.isolation.empty());
  CHECK(info.isolation == s->isolation());
  CHECK(info.isolation.starts_with("none") == !info.abilities.isolated);
  CHECK(tagged(fx.run(*s, "import platform\nplatform.python_version()"))
        == "\"" + info.python + "\"");
}

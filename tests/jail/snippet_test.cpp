#include "tests/jail/jail_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("the value of the last expression is the result", "[jail]") {
  jail_fixture fx;
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

TEST_CASE("variables, functions and imports of one snippet are there in the next", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import math\nn = 3\ndef f(k):\n  global n\n  n += k\n  return n"))
        == "ok");
  CHECK(tagged(fx.run(*s, "f(4) + math.floor(0.5)")) == "7");
  CHECK(tagged(fx.run(*s, "n")) == "7");
}

TEST_CASE("another sandbox sees nothing of it", "[jail]") {
  jail_fixture fx;
  auto a = fx.open();
  auto b = fx.open();
  CHECK(describe(fx.run(*a, "secret = 1\nopen('/tmp/x', 'w').write('1')")) == "ok");
  CHECK(describe(fx.run(*b, "secret")) == "raised NameError: name 'secret' is not defined");
  CHECK(tagged(fx.run(*b, "import os\nos.listdir('/tmp') + os.listdir('/work')")) == "[]");
}

TEST_CASE("stdout and stderr keep their order, also across subprocesses", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, R"(
import sys, subprocess
print("one")
print("two", end=" ", file=sys.stderr)
print("three", "four", sep="-")
subprocess.run(["sh", "-c", "echo five; echo six >&2"], check=True)
sys.stdout.write("seven")
)");
  CHECK(describe(o) == "ok");
  CHECK(o.logs == "one\ntwo three-four\nfive\nsix\nseven");
  CHECK(o.logs_dropped == 0);
  CHECK(fx.run(*s, "print('next')").logs == "next\n");
}

TEST_CASE("output is heard as it comes, and its middle is cut from the logs", "[jail]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.shown_bytes = 1'000;
  auto s = fx.open(spec);
  std::string heard;
  s->listen([&](std::string_view bytes) { heard += bytes; }, {});
  auto o = fx.run(*s, "print('a' * 600)\nprint('b' * 4000)\nprint('c' * 300)");
  CHECK(heard.size() == 601 + 4001 + 301);
  CHECK(o.logs_dropped == heard.size() - 1'000);
  CHECK(o.logs.starts_with(std::string(500, 'a') + "\n... [3903 bytes cut] ...\n"));
  CHECK(o.logs.ends_with("b\n" + std::string(300, 'c') + "\n"));
}

TEST_CASE("text of any script survives both ways, and broken text is replaced", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "name = 'Zoë 東京 \U0001F40D'\nprint(name)\nname");
  CHECK(o.logs == "Zoë 東京 \U0001F40D\n");
  CHECK(o.result->tagged == "Zoë 東京 \U0001F40D");
  CHECK(fx.run(*s, "'a\\ud800b'").result->text == "a\uFFFDb");
  CHECK(fx.run(*s, "import os\nos.write(1, b'\\xff\\x00z')\nNone").logs
        == std::string("\uFFFD\0z", 5));
}

TEST_CASE("an exception comes with its type, message, line and the snippet's own frames",
          "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "print('before')\ndef f(x):\n  return 1 / x\n\nf(0)\n");
  REQUIRE(o.end == snippet_end::raised);
  CHECK(o.logs == "before\n");
  CHECK(o.error->type == "ZeroDivisionError");
  CHECK(o.error->message == "division by zero");
  CHECK(o.error->line == 3);
  CHECK(o.error->traceback.find("File \"<snippet>\", line 5, in <module>\n    f(0)")
        != std::string::npos);
  CHECK(o.error->traceback.find("line 3, in f\n    return 1 / x") != std::string::npos);
  CHECK(o.error->traceback.find("troupe") == std::string::npos);
}

TEST_CASE("an error in a library is put on the snippet's line, without the library's frames",
          "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "import json\n\njson.loads('{')");
  CHECK(o.error->type == "JSONDecodeError");
  CHECK(o.error->line == 3);
  CHECK(o.error->traceback.find("decoder.py") == std::string::npos);
}

TEST_CASE("an error in a function of an earlier snippet shows that snippet's line", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "\n\ndef g():\n  raise KeyError('k')")) == "ok");
  auto o = fx.run(*s, "x = 1\ng()");
  CHECK(o.error->line == 2);
  CHECK(o.error->traceback.find("raise KeyError('k')") != std::string::npos);
  CHECK(o.error->traceback.find("File \"<snippet>\", line 2") != std::string::npos);
}

TEST_CASE("a syntax error shows its line and a caret, and nothing has run", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, "print('x')\nif True\n  pass");
  REQUIRE(o.end == snippet_end::raised);
  CHECK(o.error->type == "SyntaxError");
  CHECK(o.error->line == 2);
  CHECK(o.error->traceback.find("if True\n") != std::string::npos);
  CHECK(o.error->traceback.find('^') != std::string::npos);
  CHECK(o.logs.empty());
}

TEST_CASE("a failed assertion without a text shows its condition", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "n = 3\nassert n > 5")) == "raised AssertionError: assert n > 5");
}

TEST_CASE("a reply that may be prose runs when it is Python and only then", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, snippet{.code = "I think the answer is 4.", .may_be_prose = true});
  CHECK(o.end == snippet_end::not_code);
  CHECK(!o.error);
  CHECK(tagged(fx.run(*s, snippet{.code = "2 + 2", .may_be_prose = true})) == "4");
  CHECK(fx.run(*s, snippet{.code = {"a\0b", 3}, .may_be_prose = true}).end != snippet_end::ok);
}

TEST_CASE("exit is an error and the sandbox lives on", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  fx.run(*s, "kept = 5");
  auto o = fx.run(*s, "import sys\nsys.exit(3)");
  CHECK(describe(o).starts_with("raised SystemExit: the code asked to exit with status 3"));
  CHECK(tagged(fx.run(*s, "kept")) == "5");
}

TEST_CASE("a KeyboardInterrupt that nobody asked for is just an exception", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "raise KeyboardInterrupt('mine')"))
        == "raised KeyboardInterrupt: mine");
}

TEST_CASE("Python is whole: decorators, star targets, walrus, generators, classes", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, R"py(
import functools, enum, dataclasses

@functools.lru_cache(maxsize=None)
def fib(n):
  return n if n < 2 else fib(n - 1) + fib(n - 2)

def early():
  for i in range(10):
    try:
      if i == 3:
        return i
    except Exception:
      pass

class C:
  @property
  def x(self): return {**{"a": 1}, "b": 2}

first, *rest = [1, 2, 3]
if (n := len(rest)) == 2: pass
[fib(30), early(), C().x["b"], rest, n, list(x * x for x in range(3))]
)py")) == "[832040,3,2,[2,3],2,[0,1,4]]");
}

TEST_CASE("subprocesses, threads, asyncio and multiprocessing work inside", "[jail]") {
  jail_fixture fx;
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

TEST_CASE("a child that the snippet forks cannot answer for it", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(
    *s, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'");
  CHECK(tagged(o) == "\"parent\"");
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

TEST_CASE("files of the spec are in the work directory before the first snippet", "[jail]") {
  jail_fixture fx;
  sandbox_spec spec;
  std::string big(1'500'000, 'x');
  big[700'000] = '\0';
  spec.files = {{"data.csv", "a,b\n1,2\n"},
                {"deep/er/big.bin", big},
                {"empty", ""},
                {"helper.py", "x = 9"},
                {"json.py", "x"}};
  auto s = fx.open(spec);
  CHECK(tagged(fx.run(*s, "open('data.csv').read()")) == R"("a,b\n1,2\n")");
  CHECK(tagged(fx.run(*s, "b = open('/work/deep/er/big.bin', 'rb').read()\n[len(b), b[700000], "
                          "len(open('empty').read())]"))
        == "[1500000,0,0]");
  CHECK(tagged(fx.run(*s, "import helper, json\n[helper.x, json.loads('1')]")) == "[9,1]");
}

TEST_CASE("a file outside the work directory is refused", "[jail]") {
  jail_fixture fx;
  for (auto* path : {"../x", "/etc/passwd", "a/../../b", "", "a//b", "./x"}) {
    sandbox_spec spec;
    spec.files = {{path, "x"}};
    auto s = fx.try_open(spec);
    REQUIRE(!s);
    CHECK(s.error().code == errc::invalid_argument);
  }
}

TEST_CASE("a spec with a limit out of range is refused with the limit's name", "[jail]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.memory_bytes = 1;
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::invalid_argument);
  CHECK(s.error().detail.find("memory_bytes") != std::string::npos);
}

TEST_CASE("one snippet at a time: a second one is refused, not queued", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  std::promise<snippet_outcome> first;
  REQUIRE(s->run({.code = "import time; time.sleep(0.2)\n'first'"},
                 [&](snippet_outcome o) { first.set_value(std::move(o)); }));
  auto second = s->run({.code = "2"}, [](snippet_outcome) { FAIL("never accepted"); });
  REQUIRE(!second);
  CHECK(second.error().code == errc::invalid_argument);
  CHECK(tagged(first.get_future().get()) == "\"first\"");
}

TEST_CASE("usage says what a snippet took", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(
    *s, "import time\nend = time.process_time() + 0.05\nwhile time.process_time() < end: pass");
  CHECK(o.usage.cpu >= std::chrono::milliseconds{45});
  CHECK(o.usage.wall >= std::chrono::milliseconds{45});
  CHECK(o.usage.max_rss_bytes > (1u << 20));
  CHECK(fx.run(*s, "1").usage.cpu < std::chrono::milliseconds{45});
}

#include "tests/executors/contract/contract.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// fork() into one branch that cannot be made.
error refusal(contract_fixture& fx, sandbox& s, const sandbox_limits& limits = {}) {
  auto made = fx.fork(s, {limits}).front();
  REQUIRE(!made);
  return made.error();
}

}  // namespace

CONTRACT_CASE("a backend without the ability refuses to branch", "[fork]") {
  fx.needs(!fx.can().forks);
  auto s = fx.open();
  auto accepted = s->fork({{}}, [](auto) { FAIL("never accepted"); });
  REQUIRE(!accepted);
  CHECK(accepted.error().code == errc::denied);
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("a branch goes on with the variables, and neither sees what the other does",
              "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = {'a': [1, 2]}\ndef f(): return x")) == "ok");
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "f()")) == R"({"a":[1,2]})");
  CHECK(describe(fx.run(*b, "x['a'].append(3)")) == "ok");
  CHECK(describe(fx.run(*s, "x['b'] = 0")) == "ok");
  CHECK(tagged(fx.run(*b, "f()")) == R"({"a":[1,2,3]})");
  CHECK(tagged(fx.run(*s, "f()")) == R"({"a":[1,2],"b":0})");
  CHECK(fx.close(*s).clean());
  CHECK(tagged(fx.run(*b, "print('still here')\nlen(x)")) == "1");
  CHECK(fx.close(*b).clean());
}

CONTRACT_CASE("many branches begin at one moment, each with its own limits", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import random\nx = list(range(1000))\nrandom.seed(1)")) == "ok");
  std::vector<sandbox_limits> limits(8);
  for (std::size_t i = 0; i < limits.size(); ++i)
    limits[i].open_files = 40 + static_cast<std::uint32_t>(i);
  auto all = fx.fork(*s, limits);
  REQUIRE(all.size() == limits.size());
  std::set<std::string> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i]);
    auto& b = **all[i];
    CHECK(tagged(fx.run(b, "x.append(0)\nlen(x)")) == "1001");
    CHECK(tagged(fx.run(b, "import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)[0]"))
          == std::to_string(40 + i));
    numbers.insert(tagged(fx.run(b, "random.random()")));
  }
  CHECK(numbers.size() == all.size());
  CHECK(tagged(fx.run(*s, "len(x)")) == "1000");
  for (auto& b : all)
    CHECK(fx.close(**b).clean());
}

CONTRACT_CASE("a branch has the files, as they were", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, R"(
import os
os.makedirs("/work/d/e/empty")
open("/work/d/plain", "w").write("text" * 100_000)
open("/work/d/e/odd \udcff", "wb").write(b"\0" * 300_000 + b"x")
open("/tmp/script", "w").write("#!/bin/sh\necho hi\n")
os.chmod("/tmp/script", 0o700)
os.symlink("plain", "/work/d/link")
os.symlink("/nowhere", "/work/dangling")
os.link("/work/d/plain", "/work/d/same")
os.mkfifo("/work/pipe")
os.utime("/work/d/plain", (1, 1_000_000_000))
os.chmod("/work/d/e", 0o500)
os.utime("/work/d/e", (2, 1_000_000_001))
os.chdir("/work/d")
os.umask(0o027)
def look():
  out = []
  for tree in "/work", "/tmp":
    for here, names, files in sorted(os.walk(tree)):
      for name in sorted(names + files):
        path = f"{here}/{name}"
        i = os.lstat(path)
        size = i.st_size if files else 0
        out.append((path, i.st_mode, size, i.st_nlink, i.st_mtime_ns))
  return out
before = look()
)")) == "ok");
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "look() == before")) == "true");
  CHECK(tagged(fx.run(*b, "open('link').read() == 'text' * 100_000")) == "true");
  CHECK(tagged(fx.run(*b, "import subprocess\nsubprocess.check_output(['/tmp/script']).decode()"))
        == R"("hi\n")");
  CHECK(tagged(fx.run(*b, "open('new', 'w').close()\noct(os.stat('new').st_mode)"))
        == R"("0o100640")");
  CHECK(tagged(fx.run(*s, "[look() == before, os.path.exists('new')]")) == "[true,false]");
  CHECK(fx.get(*b, "d/e/empty").error().code == errc::denied);
}

CONTRACT_CASE("a branch has the open files, each where it was read or written", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, R"(
import os
open("data", "w").write("0123456789")
reader = open("data", "rb", buffering=0)
reader.read(4)
log = open("log", "a")
log.write("one\n"); log.flush()
log.write("buffered\n")
directory = os.open("/work", os.O_RDONLY)
high = os.dup2(os.open("data", os.O_RDWR), 33)
null = open("/dev/null", "w")
out = os.dup(1)
)")) == "ok");
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "reader.read(3).decode()")) == R"("456")");
  CHECK(tagged(fx.run(*s, "reader.read().decode()")) == R"("456789")");
  CHECK(tagged(fx.run(*b, "log.write('two\\n'); log.flush()\nopen('log').read()"))
        == R"("one\nbuffered\ntwo\n")");
  CHECK(tagged(fx.run(*b, "null.write('x'); os.pwrite(33, b'x', 0)\n"
                          "[os.listdir(directory) == os.listdir('/work'), open('data').read()]"))
        == R"([true,"x123456789"])");
  CHECK(fx.run(*b, "n = os.write(out, b'printed')").logs == "printed");
}

CONTRACT_CASE("a branch's standard descriptors are what the code has made of them", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import os\nf = os.open('errors', os.O_WRONLY | os.O_CREAT)\n"
                            "os.close(0)\nn = os.dup2(f, 2)\nn = os.write(2, b'one ')"))
        == "ok");
  auto b = fx.branch(*s);
  CHECK(fx.run(*b, "print('seen')\nn = os.write(2, b'two')").logs == "seen\n");
  CHECK(*fx.get(*b, "errors") == "one two");
  CHECK(*fx.get(*s, "errors") == "one ");
  CHECK(fx.run(*b, "os.fstat(0)").error->type == "OSError");
}

CONTRACT_CASE("as many branches are made as the session's own limits have room for", "[fork]") {
  fx.needs(fx.can().forks && fx.can().process_limit);
  sandbox_spec spec;
  spec.limits.open_files = 32;
  auto s = fx.open(spec);
  CHECK(describe(fx.run(*s, "x = 1")) == "ok");
  auto all = fx.fork(*s, std::vector<sandbox_limits>(32));
  auto made = std::ranges::count_if(all, [](const auto& b) { return b.has_value(); });
  CHECK(made >= 16);
  CHECK(made < 32);
  for (const auto& b : all)
    if (!b)
      CHECK(b.error().code == errc::unavailable);
  CHECK(tagged(fx.run(*s, "x")) == "1");
  CHECK(fx.branch(*s));
}

CONTRACT_CASE("a branch keeps what was imported after it was opened", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, R"(
import sqlite3, ctypes, array, zlib, lzma
db = sqlite3.connect(":memory:")
db.execute('create table t (x)')
db.executemany('insert into t values (?)', [(i,) for i in range(1000)])
packer = zlib.compressobj()
packed = packer.compress(b"abc" * 1000)
numbers = array.array("d", range(100_000))
strlen = ctypes.CDLL(None).strlen
)")) == "ok");
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "db.execute('insert into t values (-1)')\n"
                          "list(db.execute('select count(*), sum(x) from t').fetchone())"))
        == "[1001,499499]");
  CHECK(tagged(fx.run(*b, "len(zlib.decompress(packed + packer.flush()))")) == "3000");
  CHECK(tagged(fx.run(*b, "[sum(numbers), strlen(b'four')]")) == "[4999950000.0,4]");
  CHECK(tagged(fx.run(*b, "import xml.etree.ElementTree as e\ne.fromstring('<a>1</a>').text"))
        == R"("1")");
  CHECK(tagged(fx.run(*s, "db.execute('select count(*) from t').fetchone()[0]")) == "1000");
}

CONTRACT_CASE("tools and import rules hold in a branch, each call for its own owner", "[fork]") {
  fx.needs(fx.can().forks);
  auto spec = spec_with({make_tool("who", {})});
  spec.imports = {"math", "threading"};
  auto answer = [](const char* name) { return [name](const json&) { return json(name); }; };
  auto s = fx.open_with({{"who", answer("source")}}, spec);
  CHECK(tagged(fx.run(*s, "first = who()\nfirst")) == R"("source")");
  auto b = fx.branch(*s);
  b->listen({}, [weak = std::weak_ptr{b}](const code_call& call) {
    if (auto live = weak.lock())
      live->answer(call.id, json("branch"));
  });
  CHECK(tagged(fx.run(*b, "[first, who()]")) == R"(["source","branch"])");
  CHECK(tagged(fx.run(*s, "[first, who()]")) == R"(["source","source"])");
  CHECK(fx.run(*b, "import json").error->type == "ImportError");
  CHECK(tagged(fx.run(*b, "import threading\ngot = []\n"
                          "t = threading.Thread(target=lambda: got.append(who()))\n"
                          "t.start(); t.join()\ngot"))
        == R"(["branch"])");
}

CONTRACT_CASE("deadlines, files, commands and signals work in a branch", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import signal\nhits = []\n"
                            "h = signal.signal(signal.SIGUSR1, lambda n, f: hits.append(n))"))
        == "ok");
  auto b = fx.branch(*s);
  auto o = fx.run(*b, snippet{.code = "n = 1\nwhile True: n += 1",
                              .soft_deadline = after(steady_clock::now(), 200ms)});
  CHECK(o.end == snippet_end::soft_timeout);
  CHECK(tagged(fx.run(*b, "n > 1")) == "true");
  CHECK(fx.put(*b, "a/b", "bytes"));
  CHECK(*fx.get(*b, "a/b") == "bytes");
  CHECK(fx.get(*s, "a/b").error().code == errc::not_found);
  CHECK(fx.sh(*b, "cat a/b").output == "bytes");
  CHECK(tagged(fx.run(*b, "signal.raise_signal(signal.SIGUSR1)\nhits")) == "[10]");
  CHECK(tagged(fx.run(*b, "import os\npid = os.fork()\nif pid == 0: os._exit(3)\n"
                          "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"))
        == "3");
  o = fx.run(*b, snippet{.code = "import os\nos.abort()"});
  CHECK(o.end == snippet_end::crashed);
  CHECK(tagged(fx.run(*s, "hits")) == "[]");
}

CONTRACT_CASE("a branch goes back to its checkpoints, and so does what is branched from it",
              "[fork]") {
  fx.needs(fx.can().forks && fx.can().checkpoints);
  fx.checkpoints = true;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = [1]")) == "ok");
  CHECK(fx.run(*s, "x = 0\nimport os\nos._exit(1)").restored);
  auto b = fx.branch(*s);
  CHECK(tagged(fx.run(*b, "x.append(2)\nx")) == "[1,2]");
  CHECK(fx.run(*b, "x = 0\nimport os\nos.kill(os.getpid(), 9)").restored);
  auto c = fx.branch(*b);
  CHECK(fx.run(*c, "x = 0\nimport ctypes\nctypes.string_at(0)").restored);
  CHECK(tagged(fx.run(*c, "x.append(3)\nx")) == "[1,2,3]");
  CHECK(tagged(fx.run(*b, "x")) == "[1,2]");
  CHECK(tagged(fx.run(*s, "x")) == "[1]");
  auto o = fx.run(
    *c, snippet{.code = "while True: pass", .hard_deadline = after(steady_clock::now(), 300ms)});
  CHECK(o.restored);
  for (const auto& one : {c, b, s})
    CHECK(fx.close(*one).clean());
}

CONTRACT_CASE("a branch that is made the moment a snippet ends has checkpoints of its own",
              "[fork]") {
  fx.needs(fx.can().forks && fx.can().checkpoints);
  fx.checkpoints = true;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = 0")) == "ok");
  for (int i = 1; i <= 5; ++i) {
    CHECK(describe(fx.run(*s, "x += 1")) == "ok");
    auto b = fx.branch(*s);
    auto o = fx.run(*b, snippet{.code = "x", .hard_deadline = after(steady_clock::now(), 10s)});
    CHECK(tagged(o) == std::to_string(i));
    CHECK(o.unprotected.empty());
  }
}

CONTRACT_CASE("no dead checkpoint is the code's to find", "[fork]") {
  fx.needs(fx.can().checkpoints);
  fx.checkpoints = true;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "import os, threading, time")) == "ok");
  for (int i = 0; i < 20; ++i)
    CHECK(tagged(fx.run(*s, "os.waitpid(-1, os.WNOHANG)[0]")) == "0");
  CHECK(describe(fx.run(*s, "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"))
        == "ok");
  auto o = fx.run(*s, "os.waitpid(-1, os.WNOHANG)");  // with threads there is no checkpoint
  CHECK(!o.unprotected.empty());
  CHECK(describe(o) == "raised ChildProcessError: [Errno 10] No child processes");
}

CONTRACT_CASE("what cannot be copied is named, and the session goes on", "[fork]") {
  fx.needs(fx.can().forks);
  struct obstacle {
    const char* make;
    const char* why;
    const char* remove;
  };
  constexpr obstacle all[] = {
    {"import threading\ngo = threading.Event()\nt = threading.Thread(target=go.wait)\nt.start()",
     "other threads are running", "go.set(); t.join()"},
    {"import os\na, b = os.pipe()",
     "is no file that can be opened again: pipe:", "os.close(a); os.close(b)"},
    {"import select\np = select.epoll()", "anon_inode", "p.close()"},
    {"import mmap\nm = mmap.mmap(-1, 4096)", "memory is shared with other processes", "m.close()"},
    {"import os\nf = open('x', 'w')\nos.unlink('x')", "is a file that has no name any more",
     "f.close()"},
    {"import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('/work/d')",
     "the working directory has been removed", "os.chdir('/work')"}};
  auto s = fx.open();
  for (const auto& o : all) {
    INFO(o.make);
    CHECK(describe(fx.run(*s, o.make)) == "ok");
    auto e = refusal(fx, *s);
    INFO(e.detail);
    CHECK(e.code == errc::denied);
    CHECK(e.detail.find(o.why) != std::string::npos);
    CHECK(describe(fx.run(*s, o.remove)) == "ok");
    CHECK(fx.fork(*s, {{}}).front());
  }
}

CONTRACT_CASE("a branch whose limits are too small for the session is refused, the others are made",
              "[fork]") {
  fx.needs(fx.can().forks && fx.can().memory_limit && fx.can().disk_limit);
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = [str(i) for i in range(2_000_000)]\n"
                            "n = open('big', 'wb').write(b'x' * 5_000_000)"))
        == "ok");
  sandbox_limits small_disk, small_memory, small_file, impossible;
  small_disk.work_bytes = 1u << 20;
  small_file.file_bytes = 1u << 20;
  small_memory.memory_bytes = 128u << 20;
  impossible.open_files = 0;
  auto all = fx.fork(*s, {small_disk, small_memory, {}, small_file, impossible});
  REQUIRE(all.size() == 5);
  for (auto i : {0, 1, 3}) {
    INFO(i);
    REQUIRE(!all[static_cast<std::size_t>(i)]);
    auto& e = all[static_cast<std::size_t>(i)].error();
    INFO(e.detail);
    CHECK(e.code == errc::over_budget);
  }
  CHECK(all[0].error().detail == "/work/big: No space left on device");
  REQUIRE(!all[4]);
  CHECK(all[4].error().code == errc::invalid_argument);
  REQUIRE(all[2]);
  CHECK(tagged(fx.run(**all[2], "len(x)")) == "2000000");
  CHECK(tagged(fx.run(*s, "len(x)")) == "2000000");
}

CONTRACT_CASE("fork is one thing to do at a time, for a number of branches", "[fork]") {
  fx.needs(fx.can().forks);
  auto s = fx.open();
  auto unheard = [](auto) { FAIL("never accepted"); };
  CHECK(s->fork({}, unheard).error().code == errc::invalid_argument);
  CHECK(s->fork(std::vector<sandbox_limits>(65), unheard).error().code == errc::invalid_argument);
  std::promise<void> over;
  auto busy = s->run({.code = "import time\ntime.sleep(0.3)"},
                     [&](const snippet_outcome&) { over.set_value(); });
  REQUIRE(busy);
  CHECK(s->fork({{}}, unheard).error().code == errc::invalid_argument);
  over.get_future().wait();
  static_cast<void>(fx.close(*s));
  CHECK(s->fork({{}}, unheard).error().code == errc::unavailable);
}

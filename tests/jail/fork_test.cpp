#include "tests/jail/jail_fixture.hpp"

#include <fstream>
#include <thread>

#include <signal.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Makes the worker's own functions do something else: whoever can run code inside can do that.
std::string patched(const std::string& name, const std::string& body) {
  return "import os, time, troupe_branch, troupe_tree, troupe_state\nt = troupe_branch\ndef "
         "evil(*a):\n  "
         + body + "\n" + name + " = evil";
}

/// Gives what `code` makes of fork(): the branch's error, or how the branch ends a first snippet.
error lie(jail_fixture& fx, sandbox& s, const std::string& code,
          const sandbox_limits& limits = {}) {
  CHECK(describe(fx.run(s, code)) == "ok");
  auto made = fx.fork(s, {limits}).front();
  if (!made)
    return made.error();
  auto o = fx.run(**made, "1");
  return {errc::internal, "made: " + describe(o)};
}

/// The first of our children that is not in `known`, waited for.
int new_child(const std::set<int>& known) {
  for (int i = 0; i < 2'000; ++i) {
    for (auto pid : take_footprint().children)
      if (!known.contains(pid) && is_first_process(pid))
        return pid;
    std::this_thread::sleep_for(5ms);
  }
  return 0;
}

}  // namespace

TEST_CASE("what sandboxes have in common stays mapped, whatever is free", "[jail][fork]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, R"(
import ctypes, gc
def shared():
    ranges = [line.split()[0].split('-') for line in open('/proc/self/maps') if '/memory (deleted)' in line]
    return sum(int(end, 16) - int(start, 16) for start, end in ranges)
before = shared())"))
        == "ok");
  CHECK(tagged(fx.run(*s, "gc.collect()\nctypes.CDLL(None).malloc_trim(0)\nshared() - before"))
        == "0");
  auto made = fx.fork(*s, {{}}).front();
  REQUIRE(made);
  CHECK(tagged(fx.run(**made, "shared() - before")) == "0");
}

TEST_CASE("a session that lies about itself harms no sandbox but its branch", "[jail][fork]") {
  jail_fixture fx;
  auto other = fx.open();
  for (auto& code :
       {patched("troupe_tree.send_files", "os.write(a[0], os.urandom(1 << 20))"),
        patched("troupe_tree.send_files", "os.write(a[0], b'\\0\\0\\0\\2{}')"),
        patched("troupe_tree.send_files",
                "troupe_tree.send_record(a[0], kind='file', path='/x', size=1)"),
        patched("troupe_tree.send_files",
                "troupe_tree.send_record(a[0], kind='file', path='/work/x', size=1<<60)"),
        patched("troupe_tree.send_files",
                "troupe_tree.send_record(a[0], kind='link', path=7, target=None)"),
        patched("troupe_tree.send_files",
                "troupe_tree.send_record(a[0], kind='failed', error='x' * 100000)"),
        patched("troupe_tree.send_files", "os._exit(0)"),
        patched("troupe_tree.send_files", "os.kill(0, 9)"),
        patched("troupe_tree.send_files", "os.kill(os.getppid(), 9)"),
        patched("t._troupe.send_image", "os.write(a[0], os.urandom(1 << 20))"),
        patched("t._troupe.send_image", "os.write(a[0], bytes(1 << 20))"),
        patched("t._troupe.send_image", "return 1, 2"),
        patched("troupe_state.State", "raise MemoryError"),
        patched("troupe_state.State", "os._exit(0)"), patched("t.send", "os.close(4)"),
        patched("t.send", "return None"), patched("os.fork", "return 0"),
        std::string{"import os\nos.close(4)"}, std::string{"import os\nos.dup2(1, 4)"}}) {
    INFO(code);
    auto s = fx.open();
    sandbox_limits limits;
    limits.open_timeout = 2s;
    auto e = lie(fx, *s, code, limits);
    INFO(to_string(e));
    CHECK(e.detail != "");
    CHECK(e.detail.size() < 40'000);
    CHECK(fx.close(*s).clean());
    CHECK(tagged(fx.run(*other, "1")) == "1");
    CHECK(fx.fork(*other, {{}}).front());
  }
}

/// A pipe of its own making, with an image that is right in form.
TEST_CASE("an image of nonsense ends only the worker that takes it over", "[jail][fork]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, R"(
import struct, random, troupe_branch as t
entry = struct.Struct("<QQQQQIiBBBB4x")
def image(seed):
  r = random.Random(seed)
  own = []
  for line in open("/proc/self/maps"):
    parts = line.split(maxsplit=5)
    a, b = (int(x, 16) for x in parts[0].split("-"))
    path = parts[5].strip() if len(parts) > 5 else ""
    kind = 3 if path.startswith("[v") else 2 if path == "[stack]" else 1 if path[:1] == "/" else 0
    if kind == 3 or r.random() < 0.7:
      own.append(entry.pack(a, b, 0, 0, 0, 0, 7, kind, 0, r.random() < 0.5, 0))
  own.append(entry.pack(r.getrandbits(47) & ~4095, r.getrandbits(47) & ~4095, 0, 0, 0,
                        r.getrandbits(20), 7, 1, 0, 1, 0))
  runs = b"".join(struct.pack("<QQ", r.getrandbits(46) & ~4095, r.getrandbits(46) & ~4095)
                  for _ in range(20))
  return struct.pack("<QII", r.getrandbits(40), len(own), 1) + b"".join(own) + b"\0" + runs
seed = 0
def evil(pipe):
  os.write(pipe, image(seed))
import os
t._troupe.send_image = evil
)")) == "ok");
  for (int i = 0; i < 20; ++i) {
    CHECK(describe(fx.run(*s, "seed += 1")) == "ok");
    sandbox_limits limits;
    limits.open_timeout = 3s;
    auto made = fx.fork(*s, {limits}).front();
    REQUIRE(!made);
    INFO(to_string(made.error()));
    CHECK(made.error().code != errc::internal);
  }
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a session that hangs while it is branched is ended at the deadline", "[jail][fork]") {
  jail_fixture fx;
  sandbox_limits limits;
  limits.open_timeout = 1s;
  for (auto* where : {"t.send", "troupe_state.State", "os.waitpid"}) {
    INFO(where);
    auto s = fx.open();
    auto start = steady_clock::now();
    auto e = lie(fx, *s, patched(where, "while True: pass"), limits);
    INFO(to_string(e));
    CHECK(steady_clock::now() - start < 20s);
    CHECK(fx.close(*s).clean());
  }
}

TEST_CASE("a copy that hangs ends at its deadline, and the session lives on", "[jail][fork]") {
  jail_fixture fx;
  sandbox_limits limits;
  limits.open_timeout = 1s;
  auto s = fx.open();
  for (auto* where : {"troupe_tree.send_files", "t._troupe.send_image"}) {
    auto e = lie(fx, *s, "x = 1\n" + patched(where, "time.sleep(60)"), limits);
    INFO(where);
    CHECK(e.code == errc::timeout);
    CHECK(e.detail == "the branch was not there in time");
    CHECK(tagged(fx.run(*s, "x")) == "1");
  }
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a branch that is killed in the middle is lost alone", "[jail][fork]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = 1\n" + patched("t._troupe.send_image", "time.sleep(60)")))
        == "ok");
  auto known = take_footprint().children;
  std::thread killer{[&] {
    auto branch = new_child(known);
    std::this_thread::sleep_for(300ms);  // it waits for its image by then
    ::kill(branch, SIGKILL);
  }};
  auto made = fx.fork(*s, {{}}).front();
  killer.join();
  REQUIRE(!made);
  CHECK(made.error().code == errc::unavailable);
  CHECK(tagged(fx.run(*s, "x")) == "1");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a session that is killed or closed in the middle takes its unfinished branches along",
          "[jail][fork]") {
  jail_fixture fx;
  auto none = take_footprint().children;
  for (auto by_owner : {false, true}) {
    auto s = fx.open();
    auto source = 0;
    for (auto pid : take_footprint().children)
      if (!none.contains(pid) && is_first_process(pid))
        source = pid;
    CHECK(describe(fx.run(*s, patched("t._troupe.send_image", "time.sleep(60)"))) == "ok");
    auto known = take_footprint().children;
    std::thread killer{[&] {
      static_cast<void>(new_child(known));
      if (by_owner)
        s->close({});
      else
        ::kill(source, SIGKILL);
    }};
    auto made = fx.fork(*s, {{}, {}});
    killer.join();
    for (auto& b : made) {
      REQUIRE(!b);
      CHECK(b.error().code == errc::unavailable);
    }
    CHECK(fx.close(*s).clean());
  }
}

TEST_CASE("sandboxes of an earlier zygote cannot be branched, and it is said why",
          "[jail][fork][zygote]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = 1")) == "ok");
  ::kill(zygotes().at(0), SIGKILL);
  auto other = fx.open();
  auto made = fx.fork(*s, {{}}).front();
  REQUIRE(!made);
  CHECK(made.error().code == errc::unavailable);
  CHECK(made.error().detail.starts_with("the jail's zygote has been restarted"));
  CHECK(tagged(fx.run(*s, "x")) == "1");
  CHECK(fx.branch(*other));
}

TEST_CASE("a branch shares with the zygote what its session shares", "[jail][fork]") {
  jail_fixture fx;
  auto s = fx.open();
  constexpr const char* own_kib = R"(
sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup")
    if line.startswith(("Private_Dirty", "Private_Clean")))
)";
  CHECK(describe(fx.run(*s, own_kib)) == "ok");
  auto plain = std::stol(tagged(fx.run(*s, own_kib)));
  auto b = fx.branch(*s);
  auto branched = std::stol(tagged(fx.run(*b, own_kib)));
  INFO(plain << " KiB, " << branched << " KiB");
  CHECK(branched < plain + 2'500);
}

TEST_CASE("sandboxes made ahead serve as branches too", "[jail][fork]") {
  jail_options options;
  options.profiles.front().ready = 2;
  jail_fixture fx{options};
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = 1")) == "ok");
  fx.pause(300ms);
  for (int i = 0; i < 6; ++i) {
    auto b = fx.branch(*s);
    CHECK(tagged(fx.run(*b, "x += 1\nx")) == "2");
  }
}

TEST_CASE("a branch is of its session's profile", "[jail][fork]") {
  jail_options options;
  options.profiles.push_back(options.profiles.front());
  options.profiles.back().name = "other";
  options.profiles.back().preload = {"os", "fractions"};
  jail_fixture fx{options};
  auto first = fx.open();
  sandbox_spec spec;
  spec.profile = "other";
  auto s = fx.open(spec);
  for (auto& one : {first, s}) {
    CHECK(describe(fx.run(*one, "import fractions\nx = fractions.Fraction(1, 3)")) == "ok");
    CHECK(tagged(fx.run(*fx.branch(*one), "str(x * 2)")) == "\"2/3\"");
  }
}

TEST_CASE("branches of a deep tree keep what each level has added", "[jail][fork]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "path = []\nimport os")) == "ok");
  for (int level = 0; level < 12; ++level) {
    CHECK(describe(fx.run(*s, "path.append(" + std::to_string(level)
                                + ")\nheap = [str(i) for i in range(30_000)]"))
          == "ok");
    auto b = fx.branch(*s);
    CHECK(fx.close(*s).clean());
    s = std::move(b);
  }
  CHECK(tagged(fx.run(*s, "path == list(range(12)) and len(heap)")) == "30000");
  // Nothing piles up: neither mappings nor descriptors nor processes.
  CHECK(tagged(fx.run(*s, "len(os.listdir('/proc/self/fd')) < 8")) == "true");
  CHECK(tagged(fx.run(*s, "sum(p.isdigit() for p in os.listdir('/proc')) <= 2")) == "true");
}

#include "tests/jail/jail_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

millis since(time_point start) {
  return std::chrono::duration_cast<millis>(steady_clock::now() - start);
}

/// Generous: the machine may be busy. A lost deadline would last for ever.
constexpr millis tolerance{500};

bool exists(int pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

/// The snippet's end, and that the sandbox took no more afterwards.
snippet_outcome last_run(jail_fixture& fx, sandbox& s, std::string code) {
  auto o = fx.run(s, std::move(code));
  INFO(describe(o));
  CHECK(!survives(o.end));
  auto again = s.run(snippet{.code = "1"}, [](snippet_outcome) { FAIL("never accepted"); });
  REQUIRE(!again);
  CHECK(again.error().code == errc::unavailable);
  CHECK(fx.close(s).clean());
  return o;
}

}  // namespace

TEST_CASE("a soft deadline interrupts the code and keeps its state", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  for (auto* code : {"n = 1\nwhile True: n += 1", "import time\nn = 2\ntime.sleep(60)",
                     "import threading\nn = 3\nthreading.Event().wait()",
                     "import re\nn = 5\nre.match('(a+)+b', 'a' * 60)",
                     "import subprocess\nn = 4\nsubprocess.run(['sleep', '60'])"}) {
    INFO(code);
    auto deadline = steady_clock::now() + 100ms;
    auto o = fx.run(*s, snippet{.code = code, .soft_deadline = deadline});
    CHECK(since(deadline) < tolerance);
    CHECK(o.end == snippet_end::soft_timeout);
    CHECK(o.reason.starts_with("interrupted at the time limit after 0."));
    CHECK(o.error->type == "KeyboardInterrupt");
    CHECK(describe(fx.run(*s, "assert n")) == "ok");
  }
}

TEST_CASE("code that ignores the interrupt is killed at the hard deadline", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  auto now = steady_clock::now();
  auto o =
    fx.run(*s, snippet{.code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                               "while True: pass",
                       .soft_deadline = now + 50ms,
                       .hard_deadline = now + 200ms});
  CHECK(since(now + 200ms) < tolerance);
  CHECK(o.end == snippet_end::hard_timeout);
  CHECK(o.reason.starts_with("killed at the time limit after 0."));
}

TEST_CASE("a hang inside the interpreter ends at the hard deadline", "[jail][ends]") {
  jail_fixture fx;
  for (auto* code : {"sum(range(10**12))", "max(range(10**12))",
                     "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
                     "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                     "while True: pass"}) {
    INFO(code);
    auto s = fx.open();
    auto deadline = steady_clock::now() + 150ms;
    auto o = fx.run(
      *s, snippet{.code = code, .soft_deadline = deadline - 100ms, .hard_deadline = deadline});
    CHECK(since(deadline) < tolerance);
    CHECK(o.end == snippet_end::hard_timeout);
    CHECK(o.usage.wall >= 100ms);
    CHECK(fx.close(*s).clean());
  }
}

TEST_CASE("an interrupt from outside stops the snippet, and only that one", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  s->listen([&](std::string_view) { s->interrupt(); }, {});
  for (int i = 0; i < 20; ++i) {
    auto o = fx.run(*s, "print('go')\nwhile True: pass");
    CHECK(o.end == snippet_end::soft_timeout);
    CHECK(o.reason == "interrupted");
    // Printed last, so that the interrupt races the end: it must never strike the next snippet.
    auto end = fx.run(*s, "print('end')").end;
    CHECK((end == snippet_end::ok || end == snippet_end::soft_timeout));
    CHECK(tagged(fx.run(*s, "sum(range(1000))")) == "499500");
  }
  s->listen({}, {});
}

TEST_CASE("leaving the interpreter is reported with its status", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = last_run(fx, *s, "print('bye')\nimport os\nos._exit(7)");
  CHECK(describe(o) == "exited (the code ended the interpreter with exit status 7)");
  CHECK(o.logs == "bye\n");
}

TEST_CASE("a crash is reported with its signal", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  auto o = last_run(fx, *s, "import ctypes\nctypes.string_at(0)");
  CHECK(describe(o) == "crashed (the interpreter crashed: signal 11 (Segmentation fault))");
  s = fx.open();
  CHECK(describe(last_run(fx, *s, "import os\nos.abort()"))
        == "crashed (the interpreter crashed: signal 6 (Aborted))");
}

TEST_CASE("asking for more memory than allowed is a MemoryError, and the sandbox lives on",
          "[jail][ends]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.memory_bytes = 256u << 20;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "x = []\nwhile True: x.append(bytearray(1 << 20))");
  CHECK(o.end == snippet_end::raised);
  CHECK(o.error->type == "MemoryError");
  CHECK(tagged(fx.run(*s, "del x\n1")) == "1");
}

TEST_CASE("printing without end is stopped at the limit", "[jail][ends]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  auto o = last_run(fx, *s, "while True: print('x' * 1000)");
  CHECK(o.end == snippet_end::output_limit);
  CHECK(o.logs.size() < 70u << 10);
  CHECK(o.logs_dropped > 900u << 10);
}

TEST_CASE("output between snippets is bounded too", "[jail][ends]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  auto o =
    fx.run(*s, "import threading\ndef flood():\n  import os\n  while True: os.write(1, b'x' * "
               "4096)\nthreading.Thread(target=flood, daemon=True).start()");
  std::promise<void> later;
  fx.io.in(400ms, [&] { later.set_value(); });
  later.get_future().wait();
  CHECK(!s->run(snippet{.code = "1"}, [](snippet_outcome) {}));
  CHECK(fx.close(*s).clean());
}

TEST_CASE("anything but one well-formed reply ends the sandbox", "[jail][ends]") {
  jail_fixture fx;
  auto frame = [](std::string body) {
    return "import os\nb = " + body
           + "\nos.write(3, len(b).to_bytes(4, 'big') + b)\nimport time\ntime.sleep(5)";
  };
  for (const auto& code : {
         frame("b'hello'"),
         frame("b'{}'"),
         frame("b'[' * 100000"),
         frame("b'{\"op\": \"done\", \"id\": 77, \"end\": \"ok\"}'"),
         frame("b'{\"op\": \"done\", \"id\": 1, \"end\": \"killed\"}'"),
         frame("b'{\"op\": \"done\", \"id\": 1, \"end\": \"raised\"}'"),
         frame("b'{\"op\": \"done\", \"id\": 1, \"end\": \"ok\", \"result\": {\"text\": \"\", "
               "\"tagged\": {\"__type__\": \"pickle\", \"data\": \"\"}}}'"),
         frame("b'{\"op\": \"call\", \"id\": 9, \"call\": 1, \"tool\": \"x\", \"arguments\": {}}'"),
         frame("b'{\"op\": \"call\", \"id\": 1, \"call\": -1, \"tool\": 5, \"arguments\": []}'"),
         std::string{
           "import os, time\nos.write(3, b'\\xff\\xff\\xff\\xff' + b'x' * 1000)\ntime.sleep(5)"},
         std::string{"import os, time\nos.close(3)\ntime.sleep(5)"},
       }) {
    INFO(code);
    auto s = fx.open();
    auto start = steady_clock::now();
    auto o = last_run(fx, *s, code);
    CHECK(o.end == snippet_end::protocol);
    CHECK(since(start) < 4s);
  }
}

TEST_CASE("a reply that is sent ahead or twice ends the sandbox", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  auto forged = std::string{"import os\nb = b'{\"op\": \"done\", \"id\": 1, \"end\": \"ok\"}'\n"
                            "os.write(3, (len(b).to_bytes(4, 'big') + b) * 2)"};
  CHECK(fx.run(*s, forged).end == snippet_end::protocol);
  // A single forged reply counts as the snippet's own; its real reply is then one too many.
  auto t = fx.open();
  auto o = fx.run(*t, "import os\nb = b'{\"op\": \"done\", \"id\": 1, \"end\": \"ok\"}'\n"
                      "os.write(3, len(b).to_bytes(4, 'big') + b)");
  CHECK((o.end == snippet_end::ok || o.end == snippet_end::protocol));
  CHECK(fx.close(*t).clean());
}

TEST_CASE("closing while code runs ends it as killed, and twice reports the same", "[jail][ends]") {
  jail_fixture fx;
  auto s = fx.open();
  std::promise<snippet_outcome> done;
  REQUIRE(
    s->run(snippet{.code = "import subprocess\nsubprocess.Popen(['sleep', '100'])\n"
                           "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; setsid sleep 100'])\n"
                           "while True: pass"},
           [&](snippet_outcome o) { done.set_value(std::move(o)); }));
  std::promise<void> later;
  fx.io.in(100ms, [&] { later.set_value(); });
  later.get_future().wait();
  auto first = fx.close(*s);
  CHECK(describe(done.get_future().get()) == "killed (the sandbox was closed)");
  CHECK(first.clean());
  CHECK(first.teardown > 0us);
  CHECK(first.teardown < 1s);
  auto second = fx.close(*s);
  CHECK(second.clean());
  CHECK(second.teardown == first.teardown);
  CHECK(second.exit_status == first.exit_status);
}

TEST_CASE("dropping a sandbox closes it", "[jail][ends]") {
  jail_fixture fx;
  fx.open().reset();
  for (int i = 0; i < 200 && fx.jail->stats().live > 0; ++i) {
    std::promise<void> later;
    fx.io.in(10ms, [&] { later.set_value(); });
    later.get_future().wait();
  }
  CHECK(fx.jail->stats().live == 0);
  CHECK(fx.jail->stats().unclean_closes == 0);
}

TEST_CASE("the executor's end is the end of all its sandboxes", "[jail][ends]") {
  jail_fixture fx;
  std::vector<std::shared_ptr<sandbox>> all;
  std::promise<snippet_outcome> done;
  for (int i = 0; i < 5; ++i)
    all.push_back(fx.open());
  REQUIRE(all[0]->run(snippet{.code = "while True: pass"},
                      [&](snippet_outcome o) { done.set_value(std::move(o)); }));
  fx.jail.reset();
  CHECK(done.get_future().get().end == snippet_end::killed);
  CHECK(take_footprint().children.empty());
  CHECK(!all[1]->run(snippet{.code = "1"}, [](snippet_outcome) {}));
}

TEST_CASE("a killed zygote takes no sandbox with it, and the next open starts another",
          "[jail][zygote]") {
  jail_fixture fx;
  auto s = fx.open();
  fx.run(*s, "x = 5");
  auto before = zygotes();
  REQUIRE(before.size() == 1);
  ::kill(before[0], SIGKILL);
  CHECK(tagged(fx.run(*s, "x")) == "5");
  auto t = fx.open();
  CHECK(tagged(fx.run(*t, "1 + 1")) == "2");
  CHECK(tagged(fx.run(*s, "x + 1")) == "6");
  CHECK(zygotes() != before);
  CHECK(fx.close(*s).clean());
  CHECK(fx.close(*t).clean());
}

TEST_CASE("a zygote killed in the middle of many opens loses none of them", "[jail][zygote]") {
  jail_fixture fx;
  auto first = fx.open();
  std::vector<std::shared_ptr<std::promise<bool>>> opened;
  for (int i = 0; i < 20; ++i) {
    opened.push_back(std::make_shared<std::promise<bool>>());
    fx.jail->open({}, [p = opened.back()](auto s) { p->set_value(s.has_value()); });
    if (i == 10)
      ::kill(zygotes().at(0), SIGKILL);
  }
  for (auto& p : opened)
    CHECK(p->get_future().get());
}

TEST_CASE("zygotes killed at any moment lose no open and leave no child", "[jail][zygote]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  std::vector<std::future<bool>> opened;
  std::mt19937 random{42};
  for (int i = 0; i < 42; ++i) {
    auto done = std::make_shared<std::promise<bool>>();
    opened.push_back(done->get_future());
    fx.jail->open({}, [done](auto s) { done->set_value(s.has_value()); });
    if (i % 6 != 5)
      continue;
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 60'000});
    for (auto pid : zygotes())
      ::kill(pid, SIGKILL);
  }
  for (auto& o : opened)
    CHECK(o.get());
  fx.jail.reset();
  CHECK(take_footprint().children.empty());
}

TEST_CASE("a zygote that is not there is named", "[jail][zygote]") {
  jail_fixture fx{{.zygote_path = "/nonexistent/troupe-zygote"}};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(s.error().code == errc::unavailable);
  CHECK(s.error().detail == "cannot start /nonexistent/troupe-zygote: No such file or directory");
}

TEST_CASE("a preload that does not import fails the open and says why", "[jail][zygote]") {
  jail_options options;
  options.profiles.front().preload = {"json", "no_such_module"};
  jail_fixture fx{options};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(s.error().code == errc::unavailable);
  CHECK(s.error().detail.find("No module named 'no_such_module'") != std::string::npos);
}

TEST_CASE("an open that takes too long times out and leaves nothing", "[jail][zygote]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  ::kill(zygotes().at(0), SIGSTOP);
  sandbox_spec spec;
  spec.limits.open_timeout = 100ms;
  auto start = steady_clock::now();
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::timeout);
  CHECK(since(start) < 100ms + tolerance);
  CHECK(tagged(fx.run(*fx.open(), "1")) == "1");
}

TEST_CASE("when the process that owns them dies, its sandboxes die", "[jail][ends]") {
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  auto child = ::fork();
  if (child == 0) {
    // A process of its own: it opens a sandbox, tells the pid of its first process, and is gone.
    auto io = new reactor;
    auto jail = new jail_executor{*io};
    jail->open({}, [&](auto s) {
      if (!s)
        ::_exit(1);
      auto* live = new std::shared_ptr<sandbox>{*s};
      auto accepted = (*live)->run(snippet{.code = "while True: pass"}, [](snippet_outcome) {});
      static_cast<void>(accepted);
      auto children = take_footprint().children;
      for (int pid : children)
        static_cast<void>(::write(pipes[1], &pid, sizeof pid) == sizeof pid);
      int end = 0;
      static_cast<void>(::write(pipes[1], &end, sizeof end) == sizeof end);
    });
    for (;;)
      ::pause();
  }
  ::close(pipes[1]);
  std::vector<int> pids;
  for (int pid = 0; ::read(pipes[0], &pid, sizeof pid) == sizeof pid && pid != 0;)
    pids.push_back(pid);
  CHECK(pids.size() == 2);  // the zygote and the sandbox
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipes[0]);
  auto alive = [&] { return std::ranges::any_of(pids, exists); };
  auto start = steady_clock::now();
  // Their new parent may take its time to reap them: a zombie has no memory and runs no code.
  auto runs = [&] {
    return std::ranges::any_of(pids, [](int pid) {
      std::string line;
      std::ifstream in{"/proc/" + std::to_string(pid) + "/stat"};
      return std::getline(in, line) && line.find(") Z ") == std::string::npos;
    });
  };
  while (alive() && runs() && since(start) < 5s)
    ::usleep(10'000);
  CHECK(!runs());
}

TEST_CASE("counters tell what was opened, closed and left", "[jail]") {
  jail_fixture fx;
  auto s = fx.open();
  CHECK(fx.jail->stats().live == 1);
  CHECK(fx.close(*s).clean());
  sandbox_spec bad;
  bad.profile = "?";
  CHECK(!fx.try_open(bad));
  auto stats = fx.jail->stats();
  CHECK(stats.opened == 1);
  CHECK(stats.closed == 1);
  CHECK(stats.open_failures == 1);
  CHECK(stats.unclean_closes == 0);
  CHECK(stats.live == 0);
  CHECK(stats.open_total > 0us);
  CHECK(stats.teardown_total > 0us);
}

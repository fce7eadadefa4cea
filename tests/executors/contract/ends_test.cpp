#include "tests/executors/contract/contract.hpp"

#include <atomic>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Runs code that ends the sandbox; then it takes no more, and leaves nothing.
snippet_outcome last_run(contract_fixture& fx, sandbox& s, std::string code) {
  auto o = fx.run(s, std::move(code));
  INFO(describe(o));
  CHECK(!survives(o.end));
  auto again = s.run(snippet{.code = "1"}, [](const snippet_outcome&) { FAIL("never accepted"); });
  REQUIRE(!again);
  CHECK(again.error().code == errc::unavailable);
  CHECK(fx.close(s).clean());
  return o;
}

}  // namespace

CONTRACT_CASE("a soft deadline interrupts the code and keeps its state", "[ends]") {
  auto s = fx.open();
  for (auto* code : {"n = 1\nwhile True: n += 1", "import time\nn = 2\ntime.sleep(60)",
                     "import threading\nn = 3\nthreading.Event().wait()",
                     "import re\nn = 5\nre.match('(a+)+b', 'a' * 60)",
                     "import subprocess\nn = 4\nsubprocess.run(['sleep', '60'])"}) {
    INFO(code);
    auto deadline = steady_clock::now() + 200ms;
    auto o = fx.run(*s, snippet{.code = code, .soft_deadline = deadline});
    CHECK(since(deadline) < tolerance);
    CHECK(o.end == snippet_end::soft_timeout);
    CHECK(o.reason.starts_with("interrupted at the time limit after "));
    CHECK(o.error->type == "KeyboardInterrupt");
    CHECK(describe(fx.run(*s, "assert n")) == "ok");
  }
}

CONTRACT_CASE("the time limit holds in functions, and begins anew with each snippet", "[ends]") {
  auto s = fx.open();
  fx.run(*s, "n = 0\ndef spin():\n  while True: pass\ndef f(): spin()");
  auto within = [&](millis limit, std::string code) {
    return fx.run(*s,
                  snippet{.code = std::move(code), .soft_deadline = steady_clock::now() + limit});
  };
  for (auto* code : {"f()", "list(map(lambda _: spin(), [1]))",
                     "while True:\n  try: spin()\n  finally: n += 1"}) {
    INFO(code);
    CHECK(within(200ms, code).end == snippet_end::soft_timeout);
    CHECK(describe(within(20s, "sum(range(100_000))\nn")) == "ok");
  }
  CHECK(tagged(fx.run(*s, "n")) == "1");
}

CONTRACT_CASE("an interrupt just before a call that waits ends the wait all the same", "[ends]") {
  auto s = fx.open();
  fx.run(*s, "import ctypes\nn = 7\nlibc = ctypes.CDLL(None)");
  // bsearch waits twice: in the first wait the signal comes, and Python does not see it.
  auto deadline = steady_clock::now() + 200ms;
  auto o = fx.run(
    *s, snippet{.code = "libc.bsearch(b'x', b'abc', 3, 1, libc.pause)", .soft_deadline = deadline});
  CHECK(since(deadline) < tolerance);
  CHECK(o.end == snippet_end::soft_timeout);
  CHECK(tagged(fx.run(*s, "n")) == "7");
}

CONTRACT_CASE("code that ignores the interrupt is killed at the hard deadline", "[ends]") {
  auto s = fx.open();
  auto now = steady_clock::now();
  auto o =
    fx.run(*s, snippet{.code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                               "while True: pass",
                       .soft_deadline = now + 50ms,
                       .hard_deadline = now + 300ms});
  CHECK(since(now + 300ms) < tolerance);
  CHECK(o.end == snippet_end::hard_timeout);
  CHECK(o.reason.starts_with("killed at the time limit after "));
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("a hang inside the interpreter ends at the hard deadline", "[ends]") {
  for (auto* code : {"sum(range(10**12))", "import re\nre.match('(a+)+b', 'a' * 60)",
                     "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
                     "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                     "while True: pass"}) {
    INFO(code);
    auto s = fx.open();
    auto deadline = steady_clock::now() + 200ms;
    auto o = fx.run(*s, snippet{.code = code, .hard_deadline = deadline});
    CHECK(since(deadline) < tolerance);
    CHECK(o.end == snippet_end::hard_timeout);
    CHECK(o.usage.wall >= 100ms);
    CHECK(fx.close(*s).clean());
  }
}

CONTRACT_CASE("an interrupt from outside stops the snippet, and only that one", "[ends]") {
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

CONTRACT_CASE("an interrupt that comes too early or too late harms nobody", "[ends]") {
  auto s = fx.open();
  s->interrupt();
  for (int i = 0; i < 10; ++i) {
    std::promise<snippet_outcome> done;
    REQUIRE(
      s->run(snippet{.code = "1 + 1"}, [&](snippet_outcome o) { done.set_value(std::move(o)); }));
    s->interrupt();
    auto end = done.get_future().get().end;
    CHECK((end == snippet_end::ok || end == snippet_end::soft_timeout));
    s->interrupt();
  }
  CHECK(tagged(fx.run(*s, "2")) == "2");
}

CONTRACT_CASE("leaving the interpreter is reported with its status", "[ends]") {
  auto s = fx.open();
  auto o = last_run(fx, *s, "print('bye')\nimport os\nos._exit(7)");
  CHECK(describe(o) == "exited (the code ended the interpreter with exit status 7)");
  CHECK(o.logs == "bye\n");
}

CONTRACT_CASE("a crash is reported with its signal", "[ends]") {
  auto s = fx.open();
  auto o = last_run(fx, *s, "import ctypes\nctypes.string_at(0)");
  CHECK(describe(o) == "crashed (the interpreter crashed: signal 11 (Segmentation fault))");
  s = fx.open();
  CHECK(describe(last_run(fx, *s, "import os\nos.abort()"))
        == "crashed (the interpreter crashed: signal 6 (Aborted))");
}

CONTRACT_CASE("anything but one well-formed reply ends the sandbox", "[ends]") {
  auto frame = [](const std::string& body) {
    return "import os\nb = " + body
           + "\nos.write(3, len(b).to_bytes(4, 'big') + b)\nimport time\ntime.sleep(20)";
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
         frame("b'{\"op\": \"done\", \"id\": 1, \"data\": \"x\", \"size\": 1}'"),
         frame("b'{\"op\": \"call\", \"id\": 9, \"call\": 1, \"tool\": \"x\", \"arguments\": {}}'"),
         frame("b'{\"op\": \"call\", \"id\": 1, \"call\": -1, \"tool\": 5, \"arguments\": []}'"),
         std::string{
           "import os, time\nos.write(3, b'\\xff\\xff\\xff\\xff' + b'x' * 1000)\ntime.sleep(20)"},
         std::string{"import os, time\nos.close(3)\ntime.sleep(20)"},
       }) {
    INFO(code);
    auto s = fx.open();
    auto start = steady_clock::now();
    auto o = last_run(fx, *s, code);
    CHECK(o.end == snippet_end::protocol);
    CHECK(since(start) < 15s);
  }
}

CONTRACT_CASE("a lying answer to a file or a command ends the sandbox", "[ends]") {
  auto lie = [](const char* members) {
    return std::string{"import troupe_files, troupe_shell\n"
                       "troupe_files.serve = lambda request: "}
           + members + "\ntroupe_shell.run = lambda request, interrupts: " + members;
  };
  // Larger than asked for; no data at all.
  for (auto* members : {"{'data': 'AAAA' * 200_000, 'size': 3}", "{}"}) {
    auto s = fx.open();
    fx.run(*s, lie(members));
    CHECK(fx.get(*s, "f").error().code == errc::unavailable);
    CHECK(fx.is_gone(*s));
  }
  auto s = fx.open();
  fx.run(*s, lie("{}"));
  auto o = fx.sh(*s, "true");
  CHECK(o.end == shell_end::lost);
  CHECK(o.sandbox_end == snippet_end::protocol);
}

CONTRACT_CASE("a reply that is sent twice ends the sandbox", "[ends]") {
  auto s = fx.open();
  auto o = fx.run(*s, "import os\nb = b'{\"op\": \"done\", \"id\": 1, \"end\": \"ok\"}'\n"
                      "os.write(3, (len(b).to_bytes(4, 'big') + b) * 2)");
  CHECK(o.end == snippet_end::protocol);
  CHECK(fx.is_gone(*s));
  // A single forged reply counts as the snippet's own; its real reply is then one too many.
  auto t = fx.open();
  o = fx.run(*t, "import os\nb = b'{\"op\": \"done\", \"id\": 1, \"end\": \"ok\"}'\n"
                 "os.write(3, len(b).to_bytes(4, 'big') + b)");
  CHECK((o.end == snippet_end::ok || o.end == snippet_end::protocol));
  CHECK(fx.is_gone(*t));
  CHECK(fx.close(*t).clean());
}

CONTRACT_CASE("background children die with the sandbox, whatever they do", "[ends]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  auto o = fx.run(*s, R"py(
import os, subprocess, sys
daemon = "import os, sys, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n" \
         "os.environ.clear()\nopen(sys.argv[1], 'w').close()\ntime.sleep(600)"
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; setsid sleep 600 & sleep 600"])
subprocess.run([sys.executable, "-c", daemon, "ready"])
subprocess.run(["env", "-i", sys.executable, "-c", daemon, "ready2"])
)py");
  REQUIRE(describe(o) == "ok");
  auto inside = [&] { return descendants_of(seen.first); };
  REQUIRE(eventually([&] { return inside().size() >= 7; }));  // worker, 4 sleeps and a shell, ...
  auto pids = inside();
  CHECK(fx.close(*s).clean());
  for (auto pid : pids)
    CHECK(!runs(pid));
}

CONTRACT_CASE("background children die when the interpreter ends by itself", "[ends]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  CHECK(describe(fx.run(*s, "import os, subprocess\n"
                            "p = subprocess.Popen(['sleep', '600'], start_new_session=True)"))
        == "ok");
  auto pids = descendants_of(seen.first);
  CHECK(pids.size() >= 2);
  last_run(fx, *s, "os._exit(0)");
  for (auto pid : pids)
    CHECK(!runs(pid));
}

CONTRACT_CASE("closing while code runs ends it as killed, and twice reports the same", "[ends]") {
  auto s = fx.open();
  std::promise<snippet_outcome> done;
  std::promise<void> started;
  s->listen([&](std::string_view) { started.set_value(); }, {});
  REQUIRE(s->run(snippet{.code = "print('go')\nwhile True: pass"},
                 [&](snippet_outcome o) { done.set_value(std::move(o)); }));
  started.get_future().wait();
  auto first = fx.close(*s);
  CHECK(describe(done.get_future().get()) == "killed (the sandbox was closed)");
  CHECK(first.clean());
  CHECK(first.detail.empty());
  CHECK(first.teardown > 0us);
  CHECK(first.teardown < tolerance);
  auto second = fx.close(*s);
  CHECK(second.clean());
  CHECK(second.teardown == first.teardown);
  CHECK(second.exit_status == first.exit_status);
}

CONTRACT_CASE("two closes at once are both answered", "[ends]") {
  auto s = fx.open();
  std::promise<close_report> first, second;
  s->close([&](close_report r) { first.set_value(std::move(r)); });
  s->close([&](close_report r) { second.set_value(std::move(r)); });
  CHECK(first.get_future().get().clean());
  CHECK(second.get_future().get().clean());
}

CONTRACT_CASE("after a close everything is refused", "[ends]") {
  auto s = fx.open();
  CHECK(fx.close(*s).clean());
  auto is_gone = [](const result<void>& r) { return !r && r.error().code == errc::unavailable; };
  CHECK(is_gone(s->run({.code = "1"}, [](const snippet_outcome&) { FAIL("never accepted"); })));
  CHECK(is_gone(s->put({"f", "x"}, [](const result<void>&) { FAIL("never accepted"); })));
  CHECK(is_gone(s->get("f", 9, [](const result<std::string>&) { FAIL("never accepted"); })));
  CHECK(is_gone(s->shell({.argv = {"ls"}}, [](const shell_outcome&) { FAIL("never accepted"); })));
  s->interrupt();
  s->answer(call_id{1}, json(1));
}

CONTRACT_CASE("dropping a sandbox closes it, also from its own callback", "[ends]") {
  fx.open().reset();
  auto s = fx.open();
  std::promise<void> done;
  REQUIRE(s->run(snippet{.code = "1"}, [&](const snippet_outcome&) {
    s.reset();
    done.set_value();
  }));
  done.get_future().wait();
  CHECK(eventually([&] { return fx.backend->stats().live == 0; }));
  CHECK(fx.backend->stats().unclean_closes == 0);
}

CONTRACT_CASE("dropping a sandbox while it runs answers what ran", "[ends]") {
  auto s = fx.open();
  std::promise<snippet_outcome> done;
  REQUIRE(s->run(snippet{.code = "while True: pass"},
                 [&](snippet_outcome o) { done.set_value(std::move(o)); }));
  s.reset();
  CHECK(done.get_future().get().end == snippet_end::killed);
}

CONTRACT_CASE("an end is told once, however many reasons there are", "[ends]") {
  for (int i = 0; i < 5; ++i) {
    auto s = fx.open();
    std::atomic<int> told = 0;
    auto now = steady_clock::now();
    REQUIRE(s->run(snippet{.code = "import os, time\ntime.sleep(0.05)\nos._exit(1)",
                           .soft_deadline = now + 50ms,
                           .hard_deadline = now + 55ms},
                   [&](const snippet_outcome&) { ++told; }));
    fx.pause(millis{45 + i * 5});
    CHECK(fx.close(*s).clean());
    CHECK(eventually([&] { return told == 1; }));
    fx.pause(20ms);
    CHECK(told == 1);
  }
}

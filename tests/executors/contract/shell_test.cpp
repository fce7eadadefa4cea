#include "tests/executors/contract/contract.hpp"

#include <cstdlib>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

errc refused(sandbox& s, shell_command command) {
  auto accepted = s.shell(std::move(command), [](const shell_outcome&) { FAIL("never accepted"); });
  REQUIRE(!accepted);
  return accepted.error().code;
}

}  // namespace

CONTRACT_CASE("a command's status and output come back", "[shell]") {
  auto s = fx.open();
  auto o = fx.shell(*s, {.argv = {"echo", "a b", "$HOME"}});
  CHECK(describe(o) == "exited 0");
  CHECK(o.output == "a b $HOME\n");
  CHECK(o.output_dropped == 0);
  CHECK(describe(fx.sh(*s, "exit 7")) == "exited 7");
  CHECK(describe(fx.sh(*s, "false")) == "exited 1");
}

CONTRACT_CASE("a command that a signal ended says which", "[shell]") {
  auto s = fx.open();
  CHECK(describe(fx.sh(*s, "kill -TERM $$")) == "signalled 15");
  CHECK(describe(fx.sh(*s, "kill -KILL $$")) == "signalled 9");
  CHECK(describe(fx.sh(*s, "kill -SEGV $$")) == "signalled 11");
}

CONTRACT_CASE("both streams of a command keep their order", "[shell]") {
  auto s = fx.open();
  CHECK(fx.sh(*s, "echo one; echo two >&2; echo three; printf four").output
        == "one\ntwo\nthree\nfour");
}

CONTRACT_CASE("a command reads what it is given, and nothing else", "[shell]") {
  auto s = fx.open();
  CHECK(fx.shell(*s, {.argv = {"cat"}}).output.empty());
  CHECK(fx.shell(*s, {.argv = {"cat"}, .stdin_text = "Zoë\n東京"}).output == "Zoë\n東京");
  std::string large(1'000'000, 'x');
  CHECK(fx.shell(*s, {.argv = {"wc", "-c"}, .stdin_text = large}).output == "1000000\n");
  // Nobody waits for a command that does not read.
  CHECK(describe(fx.shell(*s, {.argv = {"true"}, .stdin_text = large})) == "exited 0");
  CHECK(fx.sh(*s, "ls -A").output.empty());
}

CONTRACT_CASE("a command runs in the work directory, or below it", "[shell]") {
  auto s = fx.open();
  REQUIRE(fx.put(*s, "a/b/f", "x"));
  CHECK(fx.sh(*s, "ls").output == "a\n");
  CHECK(fx.shell(*s, {.argv = {"ls"}, .cwd = "a/b"}).output == "f\n");
  CHECK(describe(fx.shell(*s, {.argv = {"ls"}, .cwd = "a/x"}))
        == "not_started 0 (cwd: a/x: No such file or directory)");
  CHECK(describe(fx.shell(*s, {.argv = {"ls"}, .cwd = "a/b/f"}))
        == "not_started 0 (cwd: a/b/f: not a directory)");
  fx.run(*s, "import os\nos.symlink('/etc', 'etc')");
  CHECK(describe(fx.shell(*s, {.argv = {"ls"}, .cwd = "etc"}))
        == "not_started 0 (cwd: etc: a symbolic link)");
}

CONTRACT_CASE("a command that cannot be started says why", "[shell]") {
  auto s = fx.open();
  CHECK(describe(fx.shell(*s, {.argv = {"no-such-program"}}))
        == "not_started 0 (no-such-program: No such file or directory)");
  REQUIRE(fx.put(*s, "data", "x"));
  CHECK(describe(fx.shell(*s, {.argv = {"./data"}}))
        == "not_started 0 (./data: Permission denied)");
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("a command that makes no sense is refused before it is sent", "[shell]") {
  auto s = fx.open();
  CHECK(refused(*s, {}) == errc::invalid_argument);
  CHECK(refused(*s, {.argv = {""}}) == errc::invalid_argument);
  CHECK(refused(*s, {.argv = {"echo", std::string("a\0b", 3)}}) == errc::invalid_argument);
  CHECK(refused(*s, {.argv = {"ls"}, .cwd = "/tmp"}) == errc::invalid_argument);
  CHECK(refused(*s, {.argv = {"ls"}, .cwd = "a/../.."}) == errc::invalid_argument);
}

CONTRACT_CASE("a command's deadline kills it and all its group, and the variables are kept",
              "[shell]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  fx.run(*s, "x = 5");
  for (auto* script : {"sleep 100", "trap '' TERM INT; sleep 100 & wait; sleep 100",
                       "while :; do :; done", "kill -STOP $$"}) {
    INFO(script);
    auto deadline = steady_clock::now() + 200ms;
    auto o = fx.shell(*s, {.argv = {"sh", "-c", script}, .soft_deadline = deadline});
    CHECK(since(deadline) < tolerance);
    CHECK(o.end == shell_end::soft_timeout);
    CHECK(o.status == 9);
    CHECK(o.reason.starts_with("interrupted at the time limit after "));
    CHECK(eventually([&] { return descendants_of(seen.first) == std::set{seen.worker}; }));
    CHECK(tagged(fx.run(*s, "x")) == "5");
  }
  CHECK(describe(fx.sh(*s, "exit 3")) == "exited 3");
}

CONTRACT_CASE("an interrupt ends the running command", "[shell]") {
  auto s = fx.open();
  s->listen([&](std::string_view) { s->interrupt(); }, {});
  auto o = fx.sh(*s, "echo go; sleep 100");
  CHECK(describe(o) == "soft_timeout 9 (interrupted)");
  CHECK(o.output == "go\n");
  s->listen({}, {});
}

CONTRACT_CASE("a command's hard deadline kills the sandbox", "[shell]") {
  auto s = fx.open();
  fx.run(*s, "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))");
  auto now = steady_clock::now();
  auto o = fx.shell(
    *s, {.argv = {"sleep", "100"}, .soft_deadline = now + 100ms, .hard_deadline = now + 300ms});
  CHECK(since(now + 300ms) < tolerance);
  CHECK(o.end == shell_end::lost);
  CHECK(o.sandbox_end == snippet_end::hard_timeout);
  CHECK(o.reason.starts_with("killed at the time limit after "));
  CHECK(fx.is_gone(*s));
}

CONTRACT_CASE("a background child that holds stdout open delays nobody", "[shell]") {
  auto s = fx.open();
  auto start = steady_clock::now();
  auto o = fx.sh(*s, "echo started; sleep 30 & exit 4");
  CHECK(since(start) < 15s);
  CHECK(describe(o) == "exited 4");
  CHECK(o.output == "started\n");
  // It is there until the sandbox ends.
  CHECK(tagged(fx.run(*s, "1 + 1")) == "2");
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("what a background child prints later comes with the next request", "[shell]") {
  auto s = fx.open();
  CHECK(
    fx.sh(*s, "(while [ ! -e go ]; do sleep 0.01; done; echo late; touch said) & echo now").output
    == "now\n");
  auto o = fx.run(*s, "import os, time\nopen('go', 'w').close()\n"
                      "while not os.path.exists('said'): time.sleep(0.01)");
  CHECK(o.logs == "late\n");
}

CONTRACT_CASE("the middle of a long output is cut and counted", "[shell]") {
  sandbox_spec spec;
  spec.limits.shown_bytes = 1'000;
  auto s = fx.open(spec);
  auto o = fx.sh(*s, "head -c 600 /dev/zero | tr '\\0' a; head -c 300000 /dev/zero | tr '\\0' b; "
                     "head -c 600 /dev/zero | tr '\\0' c");
  CHECK(o.end == shell_end::exited);
  CHECK(o.output_dropped == 600 + 300'000 + 600 - 1'000);
  CHECK(o.output.starts_with(std::string(500, 'a') + "\n... ["));
  CHECK(o.output.ends_with(std::string(500, 'c')));
}

CONTRACT_CASE("a flood of output costs the command, not the sandbox", "[shell]") {
  sandbox_spec spec;
  spec.limits.output_bytes = 1u << 20;
  auto s = fx.open(spec);
  fx.run(*s, "x = 6");
  for (int i = 0; i < 3; ++i) {
    auto o = fx.sh(*s, "yes");
    CHECK(describe(o) == "output_limit 9 (killed: it printed more than 1048576 bytes)");
    CHECK(o.output.size() < 70u << 10);
    CHECK(o.output_dropped > 900u << 10);
    CHECK(tagged(fx.run(*s, "x")) == "6");
  }
  CHECK(fx.sh(*s, "echo quiet").output == "quiet\n");
}

CONTRACT_CASE("output that is no text is made one", "[shell]") {
  auto s = fx.open();
  CHECK(fx.sh(*s, "printf 'a\\000b\\377c'").output
        == std::string("a\0b\uFFFD"
                       "c",
                       7));
}

CONTRACT_CASE("a command sees the sandbox's own environment", "[shell]") {
  ::setenv("TROUPE_TEST_SECRET", "do not leak", 1);
  auto s = fx.open();
  auto o = fx.sh(*s, "echo \"$TROUPE_TEST_SECRET$LANG\"; ls /proc/self/fd 2>/dev/null | wc -l");
  CHECK(o.output.starts_with("C.UTF-8\n"));
  // The worker's channel is not the command's: 0 to 2, and the directory that ls reads.
  auto lines = o.output.substr(o.output.find('\n') + 1);
  CHECK((lines == "4\n" || lines == "0\n"));  // 0: without /proc
}

CONTRACT_CASE("commands, files and snippets share one working directory", "[shell]") {
  auto s = fx.open();
  fx.run(*s, "open('a', 'w').write('1')");
  fx.sh(*s, "cat a a > b");
  CHECK(fx.get(*s, "b") == "11");
}

CONTRACT_CASE("a status that the code's own wait took is told, not guessed", "[shell]") {
  auto s = fx.open();
  fx.run(*s, "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)");
  CHECK(describe(fx.sh(*s, "exit 3"))
        == "not_started 0 (its exit status went to a wait of the code's own)");
  CHECK(tagged(fx.run(*s, "1")) == "1");
}

CONTRACT_CASE("a sandbox that is closed under a command answers it", "[shell]") {
  auto s = fx.open();
  std::promise<shell_outcome> done;
  std::promise<void> started;
  s->listen(
    [&, said = false](std::string_view) mutable {
      if (!std::exchange(said, true))
        started.set_value();
    },
    {});
  REQUIRE(s->shell({.argv = {"sh", "-c", "echo go; sleep 100"}},
                   [&](shell_outcome o) { done.set_value(std::move(o)); }));
  started.get_future().wait();
  CHECK(fx.close(*s).clean());
  auto o = done.get_future().get();
  CHECK(o.end == shell_end::lost);
  CHECK(o.sandbox_end == snippet_end::killed);
  CHECK(o.reason == "the sandbox was closed");
  CHECK(o.output == "go\n");
}

CONTRACT_CASE("usage says what a command took", "[shell]") {
  auto s = fx.open();
  auto o = fx.sh(*s, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
  CHECK(o.usage.cpu >= 10ms);
  CHECK(o.usage.wall >= o.usage.cpu / 2);
  CHECK(o.usage.max_rss_bytes > 0);
}

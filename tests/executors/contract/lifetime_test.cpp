#include "tests/executors/contract/contract.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using opened = result<std::shared_ptr<sandbox>>;

std::shared_ptr<std::promise<opened>> open_later(contract_fixture& fx, sandbox_spec spec = {}) {
  auto p = std::make_shared<std::promise<opened>>();
  fx.backend->open(std::move(spec), [p](opened s) { p->set_value(std::move(s)); });
  return p;
}

/// Waits for a new child of ours, as long as the open takes.
int new_child(const std::set<int>& before) {
  for (auto start = steady_clock::now(); since(start) < 5s;)
    for (auto pid : take_footprint().children)
      if (!before.contains(pid))
        return pid;
  return 0;
}

}  // namespace

CONTRACT_CASE("a spec that nobody could follow is refused with the reason", "[open]") {
  auto refused = [&](auto change) {
    sandbox_spec spec;
    change(spec);
    auto s = fx.try_open(spec);
    REQUIRE(!s);
    CHECK(s.error().code == errc::invalid_argument);
    return s.error().detail;
  };
  CHECK(refused([](auto& s) { s.limits.memory_bytes = 1; }).find("memory_bytes")
        != std::string::npos);
  CHECK(refused([](auto& s) { s.limits.open_files = 3; }).find("open_files") != std::string::npos);
  CHECK(refused([](auto& s) { s.limits.frame_bytes = 10; }).find("frame_bytes")
        != std::string::npos);
  CHECK(refused([](auto& s) { s.profile = "?"; }).find("'?'") != std::string::npos);
  CHECK(refused([](auto& s) { s.tools.emplace_back(); }).find("tool ''") != std::string::npos);
  CHECK(refused([](auto& s) { s.files = {{"../x", ""}}; }).find("/work") != std::string::npos);
  CHECK(fx.backend->stats().open_failures == 6);
  CHECK(fx.backend->stats().opened == 0);
}

CONTRACT_CASE("files of the spec are there before the first snippet", "[open]") {
  std::string big(1'500'000, 'x');
  big[700'000] = '\0';
  sandbox_spec spec;
  spec.files = {{"data.csv", "a,b\n1,2\n"}, {"deep/er/big.bin", big}, {"empty", ""}};
  auto s = fx.open(spec);
  CHECK(tagged(fx.run(*s, "open('data.csv').read()")) == R"("a,b\n1,2\n")");
  CHECK(tagged(fx.run(*s, "b = open('deep/er/big.bin', 'rb').read()\n"
                          "[len(b), b[700000], len(open('empty').read())]"))
        == "[1500000,0,0]");
}

CONTRACT_CASE("an open that takes too long times out and leaves nothing", "[open]") {
  sandbox_spec spec;
  spec.limits.open_timeout = 1ms;
  auto start = steady_clock::now();
  auto s = fx.try_open(spec);
  REQUIRE(!s);
  CHECK(s.error().code == errc::timeout);
  CHECK(since(start) < tolerance);
  CHECK(tagged(fx.run(*fx.open(), "1")) == "1");
}

CONTRACT_CASE("many sandboxes opened and closed at once are all clean", "[open]") {
  constexpr std::size_t count = 16;
  std::vector<std::shared_ptr<std::promise<opened>>> waiting;
  for (std::size_t i = 0; i < count; ++i)
    waiting.push_back(open_later(fx));
  std::vector<std::shared_ptr<sandbox>> all;
  for (auto& w : waiting)
    all.push_back(w->get_future().get().value());
  CHECK(fx.backend->stats().live == count);
  std::vector<std::promise<snippet_outcome>> outcomes(count);
  for (std::size_t i = 0; i < count; ++i)
    REQUIRE(all[i]->run({.code = std::to_string(i) + " * 2"},
                        [&, i](snippet_outcome o) { outcomes[i].set_value(std::move(o)); }));
  for (std::size_t i = 0; i < count; ++i)
    CHECK(tagged(outcomes[i].get_future().get()) == std::to_string(i * 2));
  std::vector<std::promise<close_report>> reports(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i]->close([&, i](close_report r) { reports[i].set_value(std::move(r)); });
  for (auto& r : reports)
    CHECK(r.get_future().get().clean());
  auto stats = fx.backend->stats();
  CHECK(stats.opened == count);
  CHECK(stats.closed == count);
  CHECK(stats.live == 0);
  CHECK(stats.unclean_closes == 0);
}

CONTRACT_CASE("counters tell what was opened, closed and left", "[open]") {
  auto s = fx.open();
  CHECK(fx.backend->stats().live == 1);
  CHECK(fx.close(*s).clean());
  auto stats = fx.backend->stats();
  CHECK(stats.opened == 1);
  CHECK(stats.closed == 1);
  CHECK(stats.open_failures == 0);
  CHECK(stats.live == 0);
  CHECK(stats.open_total > 0us);
  CHECK(stats.teardown_total > 0us);
}

CONTRACT_CASE("the executor's end is the end of all its sandboxes", "[death]") {
  std::vector<std::shared_ptr<sandbox>> all;
  std::promise<snippet_outcome> done;
  for (int i = 0; i < 4; ++i)
    all.push_back(fx.open());
  REQUIRE(all[0]->run(snippet{.code = "while True: pass"},
                      [&](snippet_outcome o) { done.set_value(std::move(o)); }));
  auto late = open_later(fx);
  fx.backend.reset();
  CHECK(done.get_future().get().end == snippet_end::killed);
  CHECK(take_footprint().children.empty());
  CHECK(!all[1]->run(snippet{.code = "1"}, [](const snippet_outcome&) {}));
  static_cast<void>(late->get_future().get());  // opened or not, it was answered
}

CONTRACT_CASE("a sandbox whose interpreter is killed while it idles is found gone", "[death]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  REQUIRE(::kill(seen.worker, SIGKILL) == 0);
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
}

CONTRACT_CASE("a sandbox whose first process is killed while it idles is found gone", "[death]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  REQUIRE(::kill(seen.first, SIGKILL) == 0);
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
  CHECK(!runs(seen.worker));
}

CONTRACT_CASE("a kill from outside ends the running code with a reason", "[death]") {
  for (auto first : {false, true}) {
    contract_fixture::processes seen;
    auto s = fx.open_seen(seen);
    s->listen([&](std::string_view) { ::kill(first ? seen.first : seen.worker, SIGKILL); }, {});
    auto o = fx.run(*s, "print('go')\nwhile True: pass");
    INFO(describe(o));
    CHECK(o.end == (first ? snippet_end::killed : snippet_end::crashed));
    CHECK(!o.reason.empty());
    CHECK(fx.close(*s).clean());
    CHECK(!runs(seen.worker));
  }
}

CONTRACT_CASE("a kill while it closes changes nothing", "[death]") {
  for (auto delay : {0us, 200us, 1'000us, 3'000us}) {
    contract_fixture::processes seen;
    auto s = fx.open_seen(seen);
    fx.run(*s, "import subprocess\nsubprocess.Popen(['sleep', '600'])");
    std::promise<close_report> closed;
    s->close([&](close_report r) { closed.set_value(std::move(r)); });
    std::this_thread::sleep_for(delay);
    ::kill(seen.first, SIGKILL);
    auto report = closed.get_future().get();
    INFO(report.detail);
    CHECK(report.clean());
    CHECK(!runs(seen.worker));
  }
}

CONTRACT_CASE("a kill while it opens fails that open and no other", "[death]") {
  static_cast<void>(fx.close(*fx.open()));
  for (auto delay : {0us, 500us, 2'000us, 10'000us, 50'000us}) {
    auto before = take_footprint().children;
    auto waiting = open_later(fx);
    auto pid = new_child(before);
    std::this_thread::sleep_for(delay);
    if (pid > 0)
      ::kill(pid, SIGKILL);
    auto s = waiting->get_future().get();
    if (s)
      CHECK(fx.is_gone(**s));  // it was ready before the kill
    else
      CHECK(s.error().code == errc::unavailable);
  }
  CHECK(tagged(fx.run(*fx.open(), "1")) == "1");
}

CONTRACT_CASE("a first process that is killed leaves no child of the code behind", "[death]") {
  contract_fixture::processes seen;
  auto s = fx.open_seen(seen);
  REQUIRE(describe(fx.run(*s, "import subprocess\nsubprocess.Popen(['sleep', '600'])\n"
                              "subprocess.Popen(['sleep', '600'], start_new_session=True)"))
          == "ok");
  auto pids = descendants_of(seen.first);
  REQUIRE(pids.size() >= 3);
  ::kill(seen.first, SIGKILL);
  CHECK(fx.is_gone(*s));
  CHECK(fx.close(*s).clean());
  for (auto pid : pids)
    CHECK(eventually([&] { return !runs(pid); }));
}

CONTRACT_CASE("when the process that owns them dies, its sandboxes die", "[death]") {
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  auto child = ::fork();
  if (child == 0) {
    // A process of its own: it opens a sandbox, lets code run in it, and is killed.
    auto* io = new reactor;
    auto* backend = fx.make_another(*io).release();
    backend->open({}, [&](opened s) {
      auto* live = new std::shared_ptr<sandbox>{s.value()};
      (*live)->listen(
        [&](std::string_view) {
          char go = '!';
          static_cast<void>(::write(pipes[1], &go, 1) == 1);
        },
        {});
      auto accepted =
        (*live)->run(snippet{.code = "import subprocess\n"
                                     "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                                     "print('go')\nwhile True: pass"},
                     [](const snippet_outcome&) {});
      static_cast<void>(accepted);
    });
    for (;;)
      ::pause();
  }
  char go = 0;
  CHECK(::read(pipes[0], &go, 1) == 1);
  auto pids = descendants_of(child);
  CHECK(pids.size() >= 3);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipes[0]);
  ::close(pipes[1]);
  CHECK(eventually([&] { return std::ranges::none_of(pids, runs); }));
  CHECK(eventually([&] { return fx.scratch_is_empty(); }));
}

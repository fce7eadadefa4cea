// Kills at bad moments, and more at once than is sensible: nothing is lost but what was killed, and
// nothing stays.

#include "executors/unique_fd.hpp"
#include "tests/jail/jail_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using branches = std::vector<result<std::shared_ptr<sandbox>>>;

std::future<branches> fork_later(sandbox& s, std::size_t count) {
  auto done = std::make_shared<std::promise<branches>>();
  auto made = done->get_future();
  REQUIRE(s.fork(std::vector<sandbox_limits>(count),
                 [done](branches all) { done->set_value(std::move(all)); }));
  return made;
}

/// Its branches, made again and again, until it is killed. Never returns.
[[noreturn]] void fork_for_ever(int ready) {
  reactor io;
  jail_executor jail{io};
  std::promise<std::shared_ptr<sandbox>> opened;
  jail.open({}, [&](auto s) { opened.set_value(s ? *s : nullptr); });
  auto s = opened.get_future().get();
  if (!s)
    ::_exit(1);
  std::promise<void> ran;
  auto code = "x = list(range(300_000))\nopen('/work/f', 'w').write('x' * 1_000_000)";
  if (!s->run({.code = code}, [&](const snippet_outcome&) { ran.set_value(); }))
    ::_exit(1);
  ran.get_future().wait();
  static_cast<void>(::write(ready, "x", 1) == 1);
  for (;;) {
    std::promise<void> over;
    if (!s->fork(std::vector<sandbox_limits>(3), [&](const branches&) { over.set_value(); }))
      ::_exit(1);
    over.get_future().wait();
  }
}

/// Waits until all our children have ended: we reap whatever loses its parent.
bool all_end() {
  auto start = steady_clock::now();
  while (steady_clock::now() - start < 20s) {
    if (::waitpid(-1, nullptr, WNOHANG) < 0)
      return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

std::size_t groups_of(int pid) {
  namespace fs = std::filesystem;
  auto name = "troupe." + std::to_string(pid) + ".";
  std::size_t n = 0;
  std::error_code ec;
  fs::recursive_directory_iterator it{"/sys/fs/cgroup",
                                      fs::directory_options::skip_permission_denied, ec};
  for (; !ec && it != fs::recursive_directory_iterator{}; it.increment(ec))
    n += it->path().filename().string().starts_with(name) ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("a runtime that is killed while it branches leaves nothing", "[jail][chaos]") {
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  std::mt19937 random{7};
  std::vector<int> pids;
  for (int round = 0; round < 12; ++round) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    auto child = ::fork();
    if (child == 0)
      fork_for_ever(ready[1]);
    ::close(ready[1]);
    char byte = 0;
    CHECK(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 60'000});
    ::kill(child, SIGKILL);
    CHECK(all_end());
    pids.push_back(child);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  // A dead runtime removes no directory; the next one does.
  jail_fixture next;
  CHECK(tagged(next.run(*next.open(), "1 + 1")) == "2");
  for (auto pid : pids)
    CHECK(groups_of(pid) == 0);
}

TEST_CASE("a zygote that is killed while a session is branched loses at most the branches",
          "[jail][chaos][zygote]") {
  jail_fixture fx;
  std::mt19937 random{11};
  for (int round = 0; round < 8; ++round) {
    auto s = fx.open();
    CHECK(describe(fx.run(*s, "x = list(range(1000))")) == "ok");
    auto made = fork_later(*s, 4);
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 40'000});
    for (auto pid : zygotes())
      ::kill(pid, SIGKILL);
    for (auto& b : wait_for(made, "fork")) {
      if (b) {
        CHECK(tagged(fx.run(**b, "len(x)")) == "1000");
        CHECK(fx.close(**b).clean());
      } else {
        INFO(to_string(b.error()));
        CHECK(b.error().code == errc::unavailable);
      }
    }
    CHECK(tagged(fx.run(*s, "len(x)")) == "1000");
    CHECK(fx.close(*s).clean());
  }
}

TEST_CASE("an executor that ends while it branches answers all the same", "[jail][chaos]") {
  std::mt19937 random{13};
  for (int round = 0; round < 6; ++round) {
    jail_fixture fx;
    auto s = fx.open();
    CHECK(describe(fx.run(*s, "x = list(range(100_000))")) == "ok");
    auto made = fork_later(*s, 4);
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 30'000});
    fx.jail.reset();
    for (auto& b : wait_for(made, "fork"))
      if (!b)
        CHECK(b.error().code == errc::unavailable);
    CHECK(take_footprint().children.empty());
  }
}

TEST_CASE("many sessions branch at once, and each branch is its own", "[jail][chaos]") {
  jail_fixture fx;
  std::vector<std::shared_ptr<sandbox>> sessions;
  std::vector<std::future<branches>> made;
  for (int i = 0; i < 6; ++i) {
    sessions.push_back(fx.open());
    CHECK(describe(fx.run(*sessions.back(), "x = " + std::to_string(i))) == "ok");
  }
  for (auto& s : sessions)
    made.push_back(fork_later(*s, 8));
  for (std::size_t i = 0; i < made.size(); ++i)
    for (auto& b : wait_for(made[i], "fork")) {
      REQUIRE(b);
      CHECK(tagged(fx.run(**b, "x")) == std::to_string(i));
      CHECK(fx.close(**b).clean());
    }
  CHECK(fx.jail->stats().unclean_closes == 0);
}

TEST_CASE("opens that wait for a busy zygote wait, and do not end it", "[jail][chaos][zygote]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  auto before = zygotes();
  // More than it makes within the shorter deadlines: these fail, the others do not.
  sandbox_spec hasty;
  hasty.limits.open_timeout = 30ms;
  std::vector<std::future<bool>> patient;
  std::atomic<int> answered = 0, wrong = 0;
  for (int i = 0; i < 60; ++i) {
    auto done = std::make_shared<std::promise<bool>>();
    if (i % 2 == 0) {
      patient.push_back(done->get_future());
      fx.jail->open({}, [done](auto s) { done->set_value(s.has_value()); });
    } else {
      fx.jail->open(hasty, [&](auto s) {
        wrong += !s && s.error().code != errc::timeout ? 1 : 0;
        ++answered;
      });
    }
  }
  for (auto& p : patient)
    CHECK(wait_for(p, "open"));
  for (int i = 0; i < 2'000 && answered < 30; ++i)
    fx.pause(5ms);
  CHECK(answered == 30);
  CHECK(wrong == 0);
  CHECK(std::ranges::count(zygotes(), before.at(0)) == 1);
}

TEST_CASE("with no descriptor left an open is refused, and the next one is made", "[jail][chaos]") {
  jail_fixture fx;
  static_cast<void>(fx.open());
  std::vector<unique_fd> all;
  for (;;) {
    unique_fd fd{::dup(0)};
    if (!fd)
      break;
    all.push_back(std::move(fd));
  }
  for (std::size_t spare : {0U, 1U, 3U, 5U, 7U}) {
    INFO(spare << " descriptors");
    while (!all.empty() && spare > 0) {
      all.pop_back();
      --spare;
    }
    auto s = fx.try_open();
    if (!s) {
      INFO(to_string(s.error()));
      CHECK(s.error().code == errc::unavailable);
    }
  }
  all.clear();
  CHECK(tagged(fx.run(*fx.open(), "1 + 1")) == "2");
}

// What a journal keeps when its process is killed or its disk is full. Each case works in a child
// process: limits, mounts and kills must not reach the test program.

#include "runtime/core/random.hpp"
#include "runtime/journal/journal_thread.hpp"
#include "tests/journal/journal_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sqlite3.h>

#include <csignal>
#include <future>
#include <map>
#include <set>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::uint32_t events_per_entry = 3;

/// Entry number n: three events of run n, and the result of sample n / 2, so each sample is
/// written twice with different answers.
journal_entry entry_number(std::uint64_t n) {
  journal_entry entry;
  for (std::uint32_t seq = 1; seq <= events_per_entry; ++seq)
    entry.events.push_back(event_of(n, seq, "action", std::string(700 + n % 900, 'p')));
  entry.result = result_of(n, "sample " + std::to_string(n / 2));
  return entry;
}

/// Writes entries from `first` on until it is killed; each durable one's number goes to `report`.
[[noreturn]] void write_forever(const std::string& path, std::uint64_t first, int report) {
  auto j = journal::open(path);
  if (!j)
    ::_exit(3);
  journal_thread thread{std::move(*j), {.max_entries = 32}};
  for (auto n = first;; ++n) {
    auto told = thread.append_blocking(entry_number(n), [n, report](const result<void>& done) {
      if (!done || ::write(report, &n, sizeof n) != sizeof n)
        ::_exit(4);
    });
    if (!told)
      ::_exit(5);
  }
}

/// The first entry of one life of the writer, and what it said was durable before it was killed.
struct life {
  std::uint64_t first;
  std::uint64_t last_durable;
};

life live_and_die(const std::string& path, std::uint64_t first, std::uint64_t reports) {
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0)
    write_forever(path, first, pipe[1]);
  ::close(pipe[1]);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < reports; ++i)
    if (::read(pipe[0], &last, sizeof last) != sizeof last)
      break;
  ::kill(child, SIGKILL);
  for (std::uint64_t n = 0; ::read(pipe[0], &n, sizeof n) == sizeof n;)
    last = n;  // reports that were on their way
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  return {first, last};
}

void check_integrity(const std::string& path) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  std::string verdict;
  sqlite3_exec(
    db, "PRAGMA integrity_check",
    [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) += values[0];
      return 0;
    },
    &verdict, nullptr);
  sqlite3_close(db);
  CHECK(verdict == "ok");
}

void check_kept(const journal& j, const std::vector<life>& lives) {
  for (const auto& life : lives)
    for (auto n = life.first; n <= life.last_durable; ++n) {
      auto events = j.events(run_id{n});
      REQUIRE(events);
      CHECK(*events == entry_number(n).events);
    }
  auto results = j.results();
  REQUIRE(results);
  std::set<std::string> samples;
  for (const auto& r : *results) {
    CHECK(samples.insert(r.sample_id).second);
    CHECK(r.answer == "answer of run " + std::to_string(r.run.value));
    CHECK(j.events(r.run)->size() == events_per_entry);  // never a result without its events
  }
}

/// Runs `body` in a child; its return value is the exit status.
template <class Body>
int in_child(Body body) {
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0)
    ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/// Appends big entries until one fails; the count of those that were taken.
std::pair<std::uint64_t, error> fill(journal& j) {
  for (std::uint64_t n = 1;; ++n) {
    std::vector<journal_entry> two{entry_number(2 * n), entry_number(2 * n + 1)};
    for (auto& entry : two)
      entry.events.front().payload.assign(20'000, 'f');
    if (auto done = j.append(two); !done)
      return {n - 1, done.error()};
  }
}

/// After a failed append: what was there is there, nothing of the failed call is, and once
/// `make_room` has run the journal goes on. 0 when all is well.
template <class MakeRoom>
int outlive_a_full_disk(const std::string& path, MakeRoom make_room) {
  auto j = journal::open(path);
  if (!j)
    return 10;
  auto [taken, why] = fill(**j);
  if (taken == 0 || why.code != errc::unavailable)
    return 11;
  for (std::uint64_t n = 1; n <= taken + 1; ++n)
    for (auto run : {2 * n, 2 * n + 1})
      if ((*j)->events(run_id{run})->size() != (n <= taken ? events_per_entry : 0))
        return 12;
  if ((*j)->results()->size() != taken)
    return 13;
  make_room();
  if (!(*j)->append({entry_number(2 * taken + 2)}))
    return 14;
  return (*j)->events(run_id{2 * taken + 2})->size() == events_per_entry ? 0 : 15;
}

bool write_text(const char* file, const std::string& text) {
  auto fd = ::open(file, O_WRONLY | O_CLOEXEC);
  auto done = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return done;
}

/// A mount namespace of our own; for anyone but root inside a user namespace, where we are root.
bool own_mounts() {
  auto uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  if (::geteuid() == 0)
    return ::unshare(CLONE_NEWNS) == 0;
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0
         && write_text("/proc/self/uid_map", "0 " + uid + " 1")
         && write_text("/proc/self/setgroups", "deny")
         && write_text("/proc/self/gid_map", "0 " + gid + " 1");
}

/// A tiny file system that only this process sees. False where that is forbidden.
bool mount_tiny(const std::string& folder) {
  return own_mounts() && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0
         && ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

}  // namespace

TEST_CASE("a writer killed at any moment loses nothing durable, tears nothing, doubles nothing",
          "[journal][crash]") {
  temp_folder dir;
  rng random{20'26};
  std::vector<life> lives;
  for (int kill = 0; kill < 20; ++kill) {
    std::uint64_t first = 1;
    if (kill > 0) {
      auto j = journal::open_readonly(dir / "out.db");
      REQUIRE(j);
      check_kept(**j, lives);
      first = (*j)->last_run()->value + 1;
    }
    lives.push_back(live_and_die(dir / "out.db", first, random.next() % 300));
    check_integrity(dir / "out.db");
  }
  auto j = journal::open(dir / "out.db");  // a dead writer's lock is no lock
  REQUIRE(j);
  check_kept(**j, lives);
  CHECK((*j)->last_run()->value > 20);
}

TEST_CASE("a file that may not grow fails the append whole, and the journal goes on after",
          "[journal][crash]") {
  temp_folder dir;
  auto path = dir / "out.db";
  auto status = in_child([&path] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    auto before = limit.rlim_cur;
    limit.rlim_cur = 1 << 20;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return outlive_a_full_disk(path, [&] {
      limit.rlim_cur = before;
      ::setrlimit(RLIMIT_FSIZE, &limit);
    });
  });
  CHECK(status == 0);
}

TEST_CASE("a full disk fails the append whole, and the journal goes on after", "[journal][crash]") {
  temp_folder dir;
  auto folder = dir / "tiny";
  std::filesystem::create_directory(folder);
  auto status = in_child([&folder] {
    if (!mount_tiny(folder))
      return 77;
    return outlive_a_full_disk(folder + "/out.db", [&folder] {
      ::mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT, "size=16m");
    });
  });
  if (status == 77)
    SKIP("no mount namespace is to be had here");
  CHECK(status == 0);
}

TEST_CASE("each callback of a group that found the disk full hears of it", "[journal][crash]") {
  temp_folder dir;
  auto path = dir / "out.db";
  auto status = in_child([&path] {
    auto opened = journal::open(path);
    if (!opened)
      return 10;
    journal_thread thread{std::move(*opened)};
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1 << 18, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int good = 0, full = 0, other = 0;
    for (std::uint64_t n = 1; n <= 400; ++n)
      if (!thread.append(entry_number(n), [&](const result<void>& done) {
            ++(done ? good : done.error().code == errc::unavailable ? full : other);
          }))
        return 11;
    thread.flush_blocking();
    if (good + full != 400 || full == 0 || other != 0)
      return 12;
    auto stats = thread.stats();
    return stats.failures > 0 && stats.entries == static_cast<std::uint64_t>(good) ? 0 : 13;
  });
  CHECK(status == 0);
}

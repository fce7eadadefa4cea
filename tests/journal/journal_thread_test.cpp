#include "runtime/journal/journal_thread.hpp"
#include "tests/journal/journal_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <atomic>
#include <future>

#include <time.h>

using namespace troupe;
using namespace troupe::test;

namespace {

std::unique_ptr<journal> opened(const std::string& path) {
  auto j = journal::open(path);
  REQUIRE(j);
  return std::move(*j);
}

/// Keeps the journal's thread inside a callback until it is let go: what is appended meanwhile
/// waits for certain.
class held {
public:
  explicit held(journal_thread& thread) {
    std::promise<void> inside;
    auto is_inside = inside.get_future();
    REQUIRE(thread.flush([&inside, gate = gate_.get_future().share()] {
      inside.set_value();
      gate.wait();
    }));
    is_inside.wait();
  }
  void let_go() { gate_.set_value(); }

private:
  std::promise<void> gate_;
};

}  // namespace

TEST_CASE("all that waits is committed in one group, and answered in order", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db")};
  held gate{thread};
  std::vector<int> answered;
  for (int i = 1; i <= 50; ++i)
    REQUIRE(thread.append({{event_of(1, static_cast<std::uint32_t>(i))}, std::nullopt},
                          [&answered, i](const result<void>& done) {
                            CHECK(done);
                            answered.push_back(i);
                          }));
  gate.let_go();
  thread.flush_blocking();
  REQUIRE(answered.size() == 50);
  CHECK(std::is_sorted(answered.begin(), answered.end()));
  CHECK(thread.stats().commits == 1);
  CHECK(thread.stats().events == 50);
  CHECK(thread.stats().largest_group >= 50);
}

TEST_CASE("an entry is on disk when its callback runs", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db")};
  std::size_t seen = 0;
  REQUIRE(thread.append({{event_of(1, 1)}, std::nullopt}, [&](const result<void>&) {
    seen = (*journal::open_readonly(dir / "out.db"))->events(run_id{1})->size();
  }));
  thread.flush_blocking();
  CHECK(seen == 1);
}

TEST_CASE("a full queue refuses, leaves the entry alone, and says when there is room",
          "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db"), {.max_entries = 4}};
  held gate{thread};
  for (std::uint32_t i = 1; i <= 4; ++i)
    REQUIRE(thread.append({{event_of(1, i)}, std::nullopt}, {}));
  journal_entry refused{{event_of(1, 5)}, std::nullopt};
  auto told = thread.append(std::move(refused), [](const result<void>&) { FAIL("was refused"); });
  REQUIRE(!told);
  CHECK(told.error().code == errc::over_budget);
  // NOLINTNEXTLINE(bugprone-use-after-move): what was refused is left alone
  CHECK(refused.events.size() == 1);
  std::promise<void> room;
  thread.when_room([&room] { room.set_value(); });
  gate.let_go();
  room.get_future().wait();
  // NOLINTNEXTLINE(bugprone-use-after-move)
  CHECK(thread.append(std::move(refused), {}));
  thread.stop();
  CHECK((*journal::open_readonly(dir / "out.db"))->events(run_id{1})->size() == 5);
}

TEST_CASE("bytes count too, but one huge entry gets through alone", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db"), {.max_entries = 100, .max_bytes = 10'000}};
  held gate{thread};
  CHECK(thread.append({{event_of(1, 1, "action", std::string(50'000, 'x'))}, std::nullopt}, {}));
  CHECK(!thread.append({{event_of(1, 2)}, std::nullopt}, {}));
  gate.let_go();
}

TEST_CASE("a blocking append waits for room", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db"), {.max_entries = 1}};
  std::atomic<int> durable{0};
  for (std::uint32_t i = 1; i <= 200; ++i)
    REQUIRE(thread.append_blocking({{event_of(1, i)}, std::nullopt},
                                   [&durable](const result<void>&) { ++durable; }));
  thread.flush_blocking();
  CHECK(durable == 200);
}

TEST_CASE("stopping writes what waits, answers it, and refuses the rest", "[journal_thread]") {
  temp_folder dir;
  int answered = 0;
  journal_thread thread{opened(dir / "out.db")};
  for (std::uint32_t i = 1; i <= 100; ++i)
    REQUIRE(thread.append({{event_of(1, i)}, std::nullopt},
                          [&answered](const result<void>& done) { answered += done ? 1 : 0; }));
  thread.stop();
  CHECK(answered == 100);
  CHECK(thread.append({{event_of(1, 101)}, std::nullopt}, {}).error().code == errc::cancelled);
  CHECK(thread.put_batch({}, {}).error().code == errc::cancelled);
  thread.flush_blocking();
  thread.stop();
  auto again = opened(dir / "out.db");
  CHECK(again->events(run_id{1})->size() == 100);
}

TEST_CASE("a batch record comes after the entries before it", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db")};
  held gate{thread};
  std::string order;
  REQUIRE(
    thread.append({{event_of(1, 1)}, std::nullopt}, [&](const result<void>&) { order += 'a'; }));
  REQUIRE(thread.put_batch({"{}", "{}", 1, 0, "", "{}"}, [&](const result<void>& done) {
    CHECK(done);
    order += 'b';
  }));
  REQUIRE(
    thread.append({{event_of(1, 2)}, std::nullopt}, [&](const result<void>&) { order += 'c'; }));
  gate.let_go();
  thread.flush_blocking();
  CHECK(order == "abc");
  CHECK((*journal::open_readonly(dir / "out.db"))->batch()->started_at == 1);
}

TEST_CASE("entries from many threads all arrive once", "[journal_thread]") {
  temp_folder dir;
  journal_thread thread{opened(dir / "out.db"), {.max_entries = 64}};
  std::atomic<int> durable{0};
  std::vector<std::thread> writers;
  for (std::uint64_t run = 1; run <= 4; ++run)
    writers.emplace_back([&thread, &durable, run] {
      for (std::uint32_t seq = 1; seq <= 250; ++seq)
        if (!thread.append_blocking({{event_of(run, seq)}, std::nullopt},
                                    [&durable](const result<void>&) { ++durable; }))
          return;
    });
  for (auto& w : writers)
    w.join();
  thread.stop();
  CHECK(durable == 1'000);
  auto j = opened(dir / "out.db");
  for (std::uint64_t run = 1; run <= 4; ++run)
    CHECK(j->events(run_id{run})->size() == 250);
}

TEST_CASE("group commit, events per second", "[.bench]") {
  temp_folder dir;
  constexpr std::uint32_t events = 200'000;
  auto cpu_micros = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
  };
  journal_thread thread{opened(dir / "out.db")};
  auto cpu = cpu_micros();
  auto began = steady_clock::now();
  for (std::uint32_t i = 0; i < events; ++i)
    REQUIRE(thread.append_blocking(
      {{event_of(1 + i % 64, 1 + i / 64, "model_replied", std::string(600, 'x'))}, std::nullopt},
      {}));
  thread.flush_blocking();
  auto wall = std::chrono::duration<double>(steady_clock::now() - began).count();
  auto stats = thread.stats();
  fmt::print("group commit: {} events of 600 bytes, {:.0f} events/s, {:.2f} us CPU per event, "
             "{} commits, largest group {}\n",
             events, events / wall, (cpu_micros() - cpu) / events, stats.commits,
             stats.largest_group);
}

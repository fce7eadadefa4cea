#include "runtime/core/manual_timers.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("timers fire in order of time, equal times in order of insertion", "[timers]") {
  manual_timers clock;
  std::string fired;
  clock.in(20ms, [&] { fired += 'c'; });
  clock.in(10ms, [&] { fired += 'a'; });
  clock.in(10ms, [&] { fired += 'b'; });
  clock.advance(9ms);
  CHECK(fired.empty());
  clock.advance(1ms);
  CHECK(fired == "ab");
  clock.advance(10ms);
  CHECK(fired == "abc");
}

TEST_CASE("a timer set by a timer fires in the same advance when it is due", "[timers]") {
  manual_timers clock;
  int count = 0;
  std::function<void()> again = [&] {
    if (++count < 5)
      clock.in(10ms, again);
  };
  clock.in(10ms, again);
  clock.advance(50ms);
  CHECK(count == 5);
}

TEST_CASE("a cancelled timer never fires, and cancelling twice says so", "[timers]") {
  manual_timers clock;
  bool fired = false;
  auto id = clock.in(10ms, [&] { fired = true; });
  CHECK(clock.cancel(id));
  CHECK(!clock.cancel(id));
  clock.advance(1s);
  CHECK(!fired);
}

TEST_CASE("many cancelled timers do not pile up", "[timers]") {
  timer_queue queue;
  for (int i = 0; i < 100'000; ++i)
    queue.cancel(queue.add(time_point{} + std::chrono::seconds{i}, [] {}));
  CHECK(queue.size() == 0);
  CHECK(!queue.next());
}

TEST_CASE("a deadline beyond the clock's range is never", "[timers]") {
  CHECK(after(never - 5s, 10s) == never);
  CHECK(after(time_point{} + 1s, 1s) == time_point{} + 2s);
}

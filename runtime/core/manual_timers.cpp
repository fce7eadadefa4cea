#include "runtime/core/manual_timers.hpp"

#include <algorithm>

namespace troupe {

time_point manual_timers::now() const {
  std::lock_guard lock{mutex_};
  return now_;
}

timer_id manual_timers::at(time_point when, callback fn) {
  std::lock_guard lock{mutex_};
  return queue_.add(when, std::move(fn));
}

bool manual_timers::cancel(timer_id id) {
  std::lock_guard lock{mutex_};
  return queue_.cancel(id);
}

std::optional<time_point> manual_timers::next() {
  std::lock_guard lock{mutex_};
  return queue_.next();
}

void manual_timers::advance(steady_clock::duration span) {
  std::unique_lock lock{mutex_};
  auto until = now_ + span;
  while (true) {
    auto due = queue_.next();
    if (!due || *due > until)
      break;
    now_ = std::max(now_, *due);
    auto fn = queue_.pop_due(now_);
    lock.unlock();
    (*fn)();
    lock.lock();
  }
  now_ = until;
}

}  // namespace troupe

#include "runtime/policy/circuit_breaker.hpp"

#include "runtime/policy/backoff.hpp"

namespace troupe {

circuit_breaker::state circuit_breaker::at(time_point now) const {
  if (!open_)
    return state::closed;
  return now >= until_ ? state::half_open : state::open;
}

time_point circuit_breaker::ready_at(time_point now) const {
  switch (at(now)) {
  case state::closed:
    return now;
  case state::open:
    return until_;
  case state::half_open:
    return probing_ ? never : now;
  }
  return now;
}

void circuit_breaker::started(time_point now) {
  if (at(now) == state::half_open)
    probing_ = true;
}

void circuit_breaker::succeeded() {
  in_row_ = 0;
  failed_probes_ = 0;
  open_ = false;
  probing_ = false;
}

void circuit_breaker::failed(time_point sent_at, time_point now) {
  if (settings_.failures == 0 || sent_at < opened_at_)
    return;
  ++in_row_;
  if (!open_ && in_row_ < settings_.failures)
    return;
  if (open_)
    ++failed_probes_;
  open(now);
}

void circuit_breaker::open(time_point now) {
  open_ = true;
  probing_ = false;
  opened_at_ = now;
  until_ = after(now, doubled(settings_.first_pause, failed_probes_, settings_.longest_pause));
}

}  // namespace troupe

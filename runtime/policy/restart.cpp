#include "runtime/policy/restart.hpp"

#include "runtime/policy/backoff.hpp"

namespace troupe {
namespace {

bool wants_restart(restart_type type, const ending& how) {
  switch (type) {
  case restart_type::permanent:
    return true;
  case restart_type::transient:
    return !how.normal;
  case restart_type::temporary:
    return false;
  }
  return false;
}

}  // namespace

restart_policy::restart_policy(restart_settings settings, std::uint64_t seed)
  : settings_{settings}, random_{seed} {}

std::variant<restart_after, forget, give_up>
restart_policy::on_exit(restart_type type, const ending& how, time_point now) {
  if (!wants_restart(type, how))
    return forget{};
  forget_old(now);
  if (restarts_.size() >= settings_.max_restarts)
    return give_up{"more than " + std::to_string(settings_.max_restarts) + " restarts in "
                   + std::to_string(settings_.within.count()) + " ms; the last end: " + how.reason};
  restarts_.push_back(now);
  return restart_after{next_delay(now)};
}

std::uint32_t restart_policy::recent_restarts(time_point now) {
  forget_old(now);
  return static_cast<std::uint32_t>(restarts_.size());
}

// OTP keeps a restart that is exactly one period old, so ours counts too.
void restart_policy::forget_old(time_point now) {
  while (!restarts_.empty() && now - restarts_.front() > settings_.within)
    restarts_.pop_front();
}

millis restart_policy::next_delay(time_point now) {
  if (last_end_ && now - *last_end_ > settings_.within)
    streak_ = 0;
  last_end_ = now;
  auto limit = doubled(settings_.first_delay, streak_++, settings_.longest_delay);
  return settings_.jitter ? full_jitter(limit, random_) : limit;
}

}  // namespace troupe

#include "runtime/policy/concurrency.hpp"

#include <algorithm>

namespace troupe {

concurrency::concurrency(concurrency_settings s)
  : limit_{static_cast<double>(std::max<std::size_t>(1, std::min(s.first, s.most)))},
    most_{static_cast<double>(std::max<std::size_t>(1, s.most))}, threshold_{most_} {}

void concurrency::answered(std::size_t in_flight) {
  if (in_flight < limit())
    return;
  limit_ = std::min(most_, limit_ + (limit_ < threshold_ ? 1 : 1 / limit_));
}

void concurrency::refused(bool overloaded, time_point sent_at, time_point now) {
  if (sent_at < cut_at_)
    return;  // it was under way when the last one was answered by a cut
  cut_at_ = now;
  threshold_ = std::max(1.0, limit_ * (overloaded ? 0.75 : 0.95));
  limit_ = std::max(1.0, limit_ / 2);
}

void concurrency::set_most(std::size_t most) {
  auto grew = static_cast<double>(most) > most_;
  most_ = static_cast<double>(std::max<std::size_t>(1, most));
  limit_ = std::min(limit_, most_);
  if (grew)
    threshold_ = most_;
}

}  // namespace troupe

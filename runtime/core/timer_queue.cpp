#include "runtime/core/timer_queue.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto later = [](const auto& a, const auto& b) {
  return a.when != b.when ? a.when > b.when : a.id > b.id;
};

}  // namespace

timer_id timer_queue::add(time_point when, timers::callback fn) {
  auto id = ++last_id_;
  callbacks_.emplace(id, std::move(fn));
  heap_.push_back({when, id});
  std::push_heap(heap_.begin(), heap_.end(), later);
  return id;
}

bool timer_queue::cancel(timer_id id) {
  if (callbacks_.erase(id) == 0)
    return false;
  if (heap_.size() > 64 && heap_.size() > 2 * callbacks_.size())
    compact();
  return true;
}

std::optional<time_point> timer_queue::next() {
  drop_dead_top();
  if (heap_.empty())
    return std::nullopt;
  return heap_.front().when;
}

std::optional<timers::callback> timer_queue::pop_due(time_point now) {
  drop_dead_top();
  if (heap_.empty() || heap_.front().when > now)
    return std::nullopt;
  auto node = callbacks_.extract(heap_.front().id);
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
  return std::move(node.mapped());
}

void timer_queue::drop_dead_top() {
  while (!heap_.empty() && !callbacks_.contains(heap_.front().id)) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
}

void timer_queue::compact() {
  std::erase_if(heap_, [this](const entry& e) { return !callbacks_.contains(e.id); });
  std::make_heap(heap_.begin(), heap_.end(), later);
}

}  // namespace troupe

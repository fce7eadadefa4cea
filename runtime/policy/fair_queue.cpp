#include "runtime/policy/fair_queue.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t most_remembered = 1'024;

}  // namespace

void fair_queue::push(job_share from, std::uint64_t call, bool front) {
  auto [it, fresh] = lines_.try_emplace(from.job);
  auto& l = it->second;
  l.weight = from.weight > 0 ? from.weight : 1;
  if (front)
    l.calls.push_front(call);
  else
    l.calls.push_back(call);
  ++size_;
  if (!fresh)
    return;
  // What it took before it ran empty still counts, else short queues would get more than their
  // part.
  auto start = clock_;
  if (auto node = ended_.extract(from.job); !node.empty())
    start = std::max(start, node.mapped());
  turns_.push_back({start, ++order_, from.job});
  std::push_heap(turns_.begin(), turns_.end(), later);
}

std::uint64_t fair_queue::next() const {
  return lines_.at(turns_.front().job).calls.front();
}

void fair_queue::pop(double cost) {
  std::pop_heap(turns_.begin(), turns_.end(), later);
  auto& t = turns_.back();
  auto it = lines_.find(t.job);
  it->second.calls.pop_front();
  --size_;
  clock_ = std::max(clock_, t.start);
  t.start += cost / it->second.weight;
  if (!it->second.calls.empty()) {
    t.order = ++order_;
    std::push_heap(turns_.begin(), turns_.end(), later);
    return;
  }
  if (ended_.size() >= most_remembered)
    std::erase_if(ended_, [this](auto& e) { return e.second <= clock_; });
  if (ended_.size() < most_remembered)
    ended_[t.job] = t.start;
  lines_.erase(it);
  turns_.pop_back();
}

}  // namespace troupe

#include "runtime/model/mock_past.hpp"

#include <utility>

namespace troupe {

std::size_t mock_past::cost_of(const std::string& id, const entry& e) {
  constexpr std::size_t nodes = 200;
  return nodes + 2 * id.size() + e.task.size();
}

void mock_past::keep(const std::string& id, entry e) {
  auto cost = cost_of(id, e);
  if (cost > max_bytes_ || entries_.contains(id))
    return;
  while (bytes_ + cost > max_bytes_) {
    auto oldest = entries_.find(order_.front());
    bytes_ -= cost_of(oldest->first, oldest->second);
    entries_.erase(oldest);
    order_.pop_front();
  }
  bytes_ += cost;
  order_.push_back(id);
  entries_.emplace(id, std::move(e));
}

std::optional<mock_past::entry> mock_past::find(const std::string& id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? std::nullopt : std::optional{it->second};
}

}  // namespace troupe

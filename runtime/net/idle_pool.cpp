#include "runtime/net/idle_pool.hpp"

#include <utility>

namespace troupe {

void idle_pool::keep(const std::string& peer, connection_ptr connection) {
  auto& of_peer = by_peer_[peer];
  if (of_peer.size() >= most_per_peer_) {
    drop_(*connection);
    return;
  }
  of_peer.push_back(all_.insert(all_.end(), {peer, std::move(connection), clock_.now()}));
  ++size_;
  if (alarm_ == 0)
    watch();
}

idle_pool::connection_ptr idle_pool::take(const std::string& peer) {
  auto found = by_peer_.find(peer);
  if (found == by_peer_.end() || found->second.empty())
    return nullptr;
  return remove(found->second.back());
}

idle_pool::connection_ptr idle_pool::remove(idle_list::iterator it) {
  auto of_peer = by_peer_.find(it->peer);
  std::erase(of_peer->second, it);
  auto connection = std::move(it->connection);
  all_.erase(it);
  --size_;
  return connection;
}

bool idle_pool::drop_longest_idle() {
  if (all_.empty())
    return false;
  drop_(*remove(all_.begin()));
  return true;
}

void idle_pool::clear() {
  while (drop_longest_idle()) {
  }
  if (alarm_ != 0)
    clock_.cancel(std::exchange(alarm_, 0));
}

void idle_pool::watch() {
  alarm_ = clock_.at(after(all_.front().since, longest_), [weak = weak_from_this()] {
    if (auto self = weak.lock())
      self->drop_old();
  });
}

void idle_pool::drop_old() {
  alarm_ = 0;
  auto now = clock_.now();
  while (!all_.empty() && after(all_.front().since, longest_) <= now)
    drop_longest_idle();
  if (!all_.empty())
    watch();
}

}  // namespace troupe

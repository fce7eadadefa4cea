#pragma once
// Connections that wait for their next exchange. Used on the reactor's thread only.

#include "runtime/core/time.hpp"
#include "runtime/net/http_connection.hpp"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

class idle_pool : public std::enable_shared_from_this<idle_pool> {
public:
  using connection_ptr = std::shared_ptr<http_connection>;
  using drop_fn = std::function<void(http_connection&)>;

  /// Connections that have been here for `longest` go to `drop`.
  idle_pool(timers& clock, std::size_t most_per_peer, millis longest, drop_fn drop)
    : clock_{clock}, most_per_peer_{most_per_peer}, longest_{longest}, drop_{std::move(drop)} {}

  /// Takes the connection in; drops it when the peer has enough of them.
  void keep(const std::string& peer, connection_ptr connection);

  /// The peer's connection that was used last, so that the rest may grow old; null: none.
  [[nodiscard]] connection_ptr take(const std::string& peer);

  /// False when there was none.
  bool drop_longest_idle();

  /// Drops all.
  void clear();

  /// From any thread.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
  struct idle_connection {
    std::string peer;
    connection_ptr connection;
    time_point since;
  };
  using idle_list = std::list<idle_connection>;  // the longest idle first

  connection_ptr remove(idle_list::iterator it);
  void watch();
  void drop_old();

  timers& clock_;
  const std::size_t most_per_peer_;
  const millis longest_;
  drop_fn drop_;
  idle_list all_;
  std::unordered_map<std::string, std::vector<idle_list::iterator>> by_peer_;
  std::atomic<std::size_t> size_{0};
  timer_id alarm_ = 0;
};

}  // namespace troupe

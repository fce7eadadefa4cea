#pragma once
// Where a supervised actor can be reached now: restarts change the handle, not the address.

#include <caf/actor.hpp>

#include <mutex>

namespace troupe {

/// A cell that the supervisor points at the living child. Thread-safe; empty between an end and
/// the restart, when senders get "unavailable" and their retry policy decides.
class address {
public:
  [[nodiscard]] caf::actor get() const {
    std::lock_guard lock{mutex_};
    return actor_;
  }

  void set(caf::actor now) {
    std::lock_guard lock{mutex_};
    actor_.swap(now);
  }

private:
  mutable std::mutex mutex_;
  caf::actor actor_;
};

}  // namespace troupe

#pragma once
// The actor in front of one executor backend: bounds how many sandboxes live, queues the rest, and
// counts a place as free only when its sandbox is verified gone.

#include "actors/messages.hpp"
#include "runtime/core/memory.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <functional>
#include <memory>

namespace troupe {

struct executor_pool_options {
  std::size_t max_sandboxes = 64;     ///< alive or being closed at once
  std::size_t max_queue = 1'000'000;  ///< opens waiting for a place; more are rejected
  bool live_output = false;           ///< owners get output_seen
  /// While the machine has less than this, an open waits until a sandbox has gone, or there is
  /// none.
  std::uint64_t spare_memory_bytes = troupe::spare_memory_bytes;
  std::function<std::uint64_t()> memory = available_memory;  ///< bytes; 0 when it is not known
};

/// Counted across restarts of the actor; read from any thread.
struct executor_pool_stats {
  std::atomic<std::uint64_t> opened{0};
  std::atomic<std::uint64_t> open_failures{0};
  std::atomic<std::uint64_t> closed_clean{0};
  std::atomic<std::uint64_t> closed_unclean{0};
  std::atomic<std::size_t> live{0};
  std::atomic<std::size_t> peak{0};
};

/// Understands sandbox_open (reply: sandbox_ready or an error) and stop: then it closes all
/// sandboxes, waits until they are gone, and quits.
[[nodiscard]] caf::actor spawn_executor_pool(caf::actor_system& sys,
                                             std::shared_ptr<executor> backend,
                                             executor_pool_options options,
                                             std::shared_ptr<executor_pool_stats> stats);

}  // namespace troupe

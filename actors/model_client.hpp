#pragma once
// The actor in front of one model endpoint: bounded concurrency, retry by class, cancellation.

#include "actors/endpoint.hpp"
#include "actors/messages.hpp"
#include "runtime/policy/retry.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <memory>

namespace troupe {

struct model_client_options {
  std::size_t max_in_flight = 64;     ///< tries open at once
  std::size_t max_queue = 1'000'000;  ///< calls waiting for a place; more are rejected
  millis attempt_timeout{600'000};    ///< of one try
  retry_limits retry{};
  std::uint64_t seed = 1;
};

/// Counted across restarts of the actor; read from any thread.
struct model_client_stats {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> attempts{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> rate_limited{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::size_t> in_flight{0};
};

/// Understands model_ask (reply: model_answer), model_cancel and stop. A Retry-After on a 429 or
/// 503 holds back every call to this endpoint, not only the one that was told.
[[nodiscard]] caf::actor spawn_model_client(caf::actor_system& sys, std::shared_ptr<endpoint> where,
                                            model_client_options options,
                                            std::shared_ptr<model_client_stats> stats,
                                            timers& clock);

}  // namespace troupe

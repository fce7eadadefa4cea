#pragma once
// The actor in front of one model: rate limits, concurrency, fairness, retry by class, failover and
// fallback, cancellation.

#include "actors/endpoint.hpp"
#include "actors/messages.hpp"
#include "runtime/policy/admission.hpp"
#include "runtime/policy/prices.hpp"
#include "runtime/policy/retry.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct model_client_options {
  std::size_t max_in_flight = 64;     ///< tries open at once
  std::size_t max_queue = 1'000'000;  ///< calls waiting for a place; more are rejected
  millis attempt_timeout{600'000};    ///< of one try
  retry_limits retry{};               ///< for each model that is tried
  rate_settings rates{};  ///< of each endpoint of the model asked for, as the user knows
  breaker_settings breaker{};
  std::uint64_t seed = 1;
};

/// Where calls may go.
struct model_route {
  std::shared_ptr<endpoint> where;
  std::string name{};           ///< for messages: address, or model
  std::string model{};          ///< asked for in place of the request's own; empty: that
  std::uint32_t choice = 0;     ///< 0: the model asked for; 1: its first fallback; ...
  std::optional<price> cost{};  ///< empty: not known, and counted as nothing
};

/// Counted across restarts of the actor; read from any thread.
struct model_client_stats {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> attempts{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> rate_limited{0};  ///< tries that a 429 wasted
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> waits{0};      ///< tries held back for 1 ms or longer
  std::atomic<std::uint64_t> waited_us{0};  ///< by them, in all
  std::atomic<std::uint64_t> failovers{0};  ///< retries at another endpoint of the same model
  std::atomic<std::uint64_t> fallbacks{0};  ///< calls that went on to another model
  std::atomic<std::size_t> in_flight{0};
};

/// Understands model_ask (reply: model_answer), model_cancel, model_tune and stop.
/// A Retry-After on a 429 or 503 holds back every call to that endpoint, not only the one that was
/// told, unless refusals there are known to come by chance. A call goes to the least loaded
/// endpoint of its model that is alive; after a failure to another one at once, if there is one.
/// When its tries are used up, the account has no credit left or all endpoints are down, it goes on
/// to the next choice of model. Without any, calls wait for an endpoint that is down as long as
/// their tries would have taken. A call that names who pays is reserved before each try and settled
/// after it. While what is under way may use up the rest it waits, and when nothing is left it ends
/// as failure_class::budget. The endpoints must share one encoder. At least one has choice 0.
[[nodiscard]] caf::actor spawn_model_client(caf::actor_system& sys, std::vector<model_route> routes,
                                            const model_client_options& options,
                                            std::shared_ptr<model_client_stats> stats,
                                            timers& clock);

/// With one endpoint.
[[nodiscard]] caf::actor spawn_model_client(caf::actor_system& sys, std::shared_ptr<endpoint> where,
                                            const model_client_options& options,
                                            std::shared_ptr<model_client_stats> stats,
                                            timers& clock);

}  // namespace troupe

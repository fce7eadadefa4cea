#pragma once
// The actor in front of a model_client that answers from a shelf what it can.

#include "actors/address.hpp"
#include "actors/messages.hpp"
#include "actors/reply_shelf.hpp"

#include <caf/actor_system.hpp>

#include <atomic>
#include <memory>

namespace troupe {

/// Counted across restarts of the actor; read from any thread.
struct reply_keeper_stats {
  std::atomic<std::uint64_t> found{0};   ///< answered from the shelf
  std::atomic<std::uint64_t> shared{0};  ///< answered with what another run was asking for
  std::atomic<std::uint64_t> asked{0};   ///< passed on to the model
};

struct reply_keeper_options {
  std::shared_ptr<const codec> format;  ///< that of the endpoint behind the model_client
  std::string base;                     ///< as in request_identity
  millis flush_after{200};              ///< from a reply to its being durable
  bool own_thread = true;               ///< the shelf may block: only tests share a worker
};

/// Understands model_ask (reply: model_answer), model_cancel and stop, as model_client does, to
/// whose address it passes on what the shelf has not. A request that another run is asking with the
/// same draw waits for that answer and shares it. The shelf outlives restarts.
[[nodiscard]] caf::actor spawn_reply_keeper(caf::actor_system& sys, std::shared_ptr<address> model,
                                            std::shared_ptr<reply_shelf> shelf,
                                            reply_keeper_options options,
                                            std::shared_ptr<reply_keeper_stats> stats,
                                            timers& clock);

}  // namespace troupe

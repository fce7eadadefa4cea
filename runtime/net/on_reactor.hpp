#pragma once
// For destructors: what must happen on the reactor's thread before they may return.

#include "runtime/net/reactor.hpp"

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

namespace troupe {

/// Runs `fn` once on the reactor's thread and waits for its end. On that thread, or when the
/// reactor has stopped, runs it here. Blocks: for destructors only.
template <class Fn>
void run_on_reactor(reactor& io, Fn fn) {
  if (io.on_thread()) {
    fn();
    return;
  }
  struct shared {
    std::atomic<bool> claimed{false};
    std::promise<void> ended;
  };
  auto state = std::make_shared<shared>();
  auto ended = state->ended.get_future();
  io.post([state, &fn] {
    if (state->claimed.exchange(true))
      return;
    fn();
    state->ended.set_value();
  });
  // A reactor that stops keeps posted work unrun: that is seen here, not waited for.
  while (ended.wait_for(std::chrono::milliseconds{20}) != std::future_status::ready)
    if (io.context().stopped() && !state->claimed.exchange(true)) {
      fn();
      return;
    }
}

}  // namespace troupe

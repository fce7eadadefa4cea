#pragma once
// One thread that waits: for sockets, pipes, child exits and time. Nothing on it may block.

#include "runtime/core/time.hpp"

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace troupe {

/// An Asio io_context on its own thread, and the process's timer service. All objects that use
/// `context()` run their handlers on that one thread, so they need no locks among themselves.
/// Resource: made by the composition root, outlives everything that uses it.
class reactor final : public timers {
public:
  reactor();
  ~reactor() override;
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept;

  /// Runs `fn` on the reactor's thread, soon. Thread-safe. After `stop` it is dropped.
  void post(std::function<void()> fn);

  /// True on the reactor's thread.
  [[nodiscard]] bool on_thread() const noexcept;

  [[nodiscard]] time_point now() const override;
  timer_id at(time_point when, callback fn) override;
  bool cancel(timer_id id) override;

  /// Ends the thread; pending handlers and timers are dropped. Idempotent. Not from its thread.
  void stop();

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

#pragma once
// What the handles of a runtime's runs share with it, and what outlives it.

#include "actors/caf_glue.hpp"
#include "actors/messages.hpp"
#include "runtime/host/callback_thread.hpp"
#include "runtime/host/engine.hpp"
#include <troupe/run.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// The state behind a handle. Completed exactly once, by whoever is first.
struct run::state : std::enable_shared_from_this<run::state> {
  std::uint64_t id = 0;
  std::shared_ptr<class submitted_runs> home;
  event_callback on_event;
  std::atomic<std::uint64_t> seen{0};     ///< events, those that were left out too
  std::atomic<std::uint32_t> waiting{0};  ///< events that the callback thread has not shown yet

  mutable std::mutex mutex;  // guards what follows
  mutable std::condition_variable ended;
  std::optional<run_outcome> outcome;
  std::vector<std::promise<run_outcome>> promises;
  std::vector<end_callback> callbacks;

  /// From an actor's thread.
  void see(const run_event& what);

  /// False when it had been completed before.
  bool complete(run_outcome how);

  void call_back(end_callback callback);
};

/// The open runs of one runtime, and the way to their actors for as long as there is one.
class submitted_runs {
public:
  explicit submitted_runs(std::shared_ptr<callback_thread> callbacks)
    : callbacks_{std::move(callbacks)} {}

  /// From now on messages reach `host`.
  void open(engine& host);

  /// Keeps the run until it is complete. False, and nothing is kept, once they are closed.
  bool add(const std::shared_ptr<run::state>& r);
  void remove(std::uint64_t id);

  template <class Message>
  void post(Message m) {
    std::lock_guard lock{mutex_};
    if (host_ != nullptr)
      glue::post(host_->runs(), std::move(m));
  }

  /// Takes no more. `why` is what those that come are told.
  void close(const std::string& why);
  [[nodiscard]] std::string closed_because() const;

  /// Completes all that are still open. The engine is not used any more.
  void end_all(const std::string& end, const std::string& why);

  [[nodiscard]] callback_thread& callbacks() const noexcept { return *callbacks_; }

private:
  std::shared_ptr<callback_thread> callbacks_;
  mutable std::mutex mutex_;  // guards what follows
  engine* host_ = nullptr;
  std::string closed_;
  std::unordered_map<std::uint64_t, std::shared_ptr<run::state>> open_;
};

}  // namespace troupe

#pragma once
// One sandbox of a backend whose worker speaks through worker_link, as its owner's handle sees it.

#include "executors/worker_request.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// Keeps itself alive until its processes are gone. Reactor's thread only.
class worker_session {
public:
  virtual ~worker_session() = default;

  virtual void listen(sandbox::output_fn output, sandbox::call_fn call) = 0;
  virtual void hear_connections(const sandbox::connection_fn&) {}

  /// One request at a time; the caller has made sure. In a dead sandbox it ends at once.
  virtual void begin(std::unique_ptr<worker_request> request) = 0;

  /// True when the backend can branch sessions.
  [[nodiscard]] virtual bool forks() const noexcept { return false; }

  /// As sandbox::fork. One request at a time; the caller has made sure.
  virtual void fork(const std::vector<sandbox_limits>& /*branches*/,
                    const sandbox::forked_fn& /*done*/) {}

  virtual void answer(call_id id, const result<json>& value) = 0;
  virtual void interrupt(std::string why) = 0;
  virtual void close(sandbox::closed_fn done) = 0;

  /// Called when the sandbox is about to die, or has died: it takes no more requests.
  std::function<void()> on_gone;
};

}  // namespace troupe

#pragma once
// The thread on which a program's own callbacks run, one after the other.

#include <functional>
#include <memory>

namespace troupe {

/// Keeps strangers' code off the threads of actors and sockets. Thread-safe. Resource.
class callback_thread {
public:
  using job = std::function<void()>;

  callback_thread();
  ~callback_thread();
  callback_thread(const callback_thread&) = delete;
  callback_thread& operator=(const callback_thread&) = delete;

  /// Takes a job to be run after those that wait. What it throws is logged. False after finish().
  bool post(job what);

  /// Takes no more, and returns when all have been run; from a job, at once. Idempotent.
  void finish();

private:
  struct queue;
  static void serve(const std::shared_ptr<queue>& jobs);

  std::shared_ptr<queue> jobs_;
};

/// Runs a stranger's code: what it throws is logged, and goes no further.
void contained(const char* what, const std::function<void()>& code) noexcept;

}  // namespace troupe

#pragma once
// What the owner of a sandbox holds, the same for every backend with a worker_session.

#include "executors/executor.hpp"
#include "executors/worker_session.hpp"
#include "runtime/net/reactor.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

struct session_settings {
  sandbox_limits limits;
  bool checkpoints = false;
};

/// Thread-safe; closes the session at the end.
class session_sandbox final : public sandbox {
public:
  /// On the reactor's thread.
  session_sandbox(reactor& io, std::shared_ptr<worker_session> session,
                  const session_settings& settings, std::string isolation);
  ~session_sandbox() override;
  session_sandbox(const session_sandbox&) = delete;
  session_sandbox& operator=(const session_sandbox&) = delete;

  void listen(output_fn output, call_fn call) override;
  void hear_connections(const connection_fn& fn) override;
  result<void> run(snippet code, done_fn done) override;
  result<void> put(sandbox_file file, put_fn done) override;
  result<void> get(std::string path, std::size_t max_bytes, got_fn done) override;
  result<void> shell(shell_command command, shell_fn done) override;
  result<void> fork(std::vector<sandbox_limits> branches, forked_fn done) override;
  void answer(call_id id, result<json> value) override;
  void interrupt() override;
  void close(closed_fn done) override;
  std::string_view isolation() const noexcept override { return isolation_; }

private:
  enum class phase { idle, busy, gone };
  using shared_phase = std::shared_ptr<std::atomic<phase>>;

  [[nodiscard]] result<void> enter();
  void begin(std::unique_ptr<worker_request> request);
  template <class Done>
  [[nodiscard]] auto leaving(Done done) const;

  reactor& io_;
  std::shared_ptr<worker_session> session_;
  session_settings settings_;
  std::string isolation_;
  shared_phase phase_ = std::make_shared<std::atomic<phase>>(phase::idle);
};

}  // namespace troupe

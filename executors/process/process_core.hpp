#pragma once
// What the sessions of one process executor share.

#include "executors/executor.hpp"
#include "executors/unique_fd.hpp"
#include "executors/worker_protocol.hpp"
#include "runtime/net/reactor.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace troupe::process {

class process_session;

/// Owned by the executor and by each live session, so that it outlives the last of them.
/// Reactor's thread only, except `info` and `stats`.
class process_core {
public:
  /// `python` is the interpreter's path, or why there is none.
  process_core(reactor& io, std::string keeper_path, result<std::string> python,
               std::filesystem::path directory, std::string profile);

  reactor& io;
  const std::string keeper_path;
  const std::filesystem::path directory;  ///< where each sandbox has a directory of its own
  const std::string profile;              ///< the one that specs may name

  /// The worker's Python, for source_fd. Errors  unavailable.
  [[nodiscard]] result<int> image();

  /// The interpreter for the next sandbox.
  [[nodiscard]] const result<std::string>& python() const noexcept { return python_; }

  void opening(std::shared_ptr<process_session> s);
  void opened(micros took, const worker::interpreter& python);
  void open_failed();
  void ended(const std::shared_ptr<process_session>& s, bool was_open, const close_report& report);

  /// Closes all sessions, then calls `done`.
  void close(std::function<void()> done);
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  [[nodiscard]] executor_info info() const;
  [[nodiscard]] executor_stats stats() const;

private:
  void tell_when_empty();

  result<std::string> python_;
  unique_fd image_;
  std::set<std::shared_ptr<process_session>> sessions_;
  bool closing_ = false;
  std::function<void()> closed_;

  mutable std::mutex mutex_;
  std::string version_;  ///< guarded by mutex_, like the next
  executor_stats stats_;
};

}  // namespace troupe::process

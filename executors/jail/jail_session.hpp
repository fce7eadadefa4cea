#pragma once
// One sandbox of the jail, from the request to the verified end.

#include "executors/control_channel.hpp"
#include "executors/executor.hpp"
#include "executors/jail/jail_core.hpp"
#include "executors/jail/sandbox_group.hpp"
#include "executors/jail/zygote_pool.hpp"
#include "executors/worker_link.hpp"
#include "executors/worker_session.hpp"
#include "runtime/net/egress_proxy.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace troupe::jail {

/// Keeps itself alive until its processes are gone. Reactor's thread only.
class jail_session final : public worker_session,
                           public std::enable_shared_from_this<jail_session>,
                           private worker_owner {
public:
  using opened_fn = std::function<void(result<void>)>;

  /// Of `spec` only what is set before the worker starts: limits, checkpoints.
  jail_session(std::shared_ptr<zygote_pool> pool, const sandbox_spec& spec);
  ~jail_session() override;

  /// Creates the sandbox ahead of its use, and tells it what the next one to open it is thought to
  /// want: tools and rules, no files.
  void prepare_ahead(const sandbox_spec& wanted);

  [[nodiscard]] bool prepared() const noexcept { return prepared_; }

  /// True when it could be opened with this spec.
  [[nodiscard]] bool fits(const sandbox_spec& spec) const;

  [[nodiscard]] bool gone() const noexcept { return verdict_ || dead_; }

  /// True when its processes run and nothing has gone wrong.
  [[nodiscard]] bool ready() const noexcept { return exit_.open() && !verdict_ && !dead_; }

  /// Creates it if need be, and makes it ready for snippets; `done` once. Errors as executor::open.
  void open(const sandbox_spec& spec, opened_fn done);

  void listen(sandbox::output_fn output, sandbox::call_fn call) override;
  void hear_connections(const sandbox::connection_fn& fn) override { connection_fn_ = fn; }
  void begin(std::unique_ptr<worker_request> request) override;
  [[nodiscard]] bool forks() const noexcept override { return true; }
  void fork(const std::vector<sandbox_limits>& branches, const sandbox::forked_fn& done) override;
  void answer(call_id id, const result<json>& value) override;
  void interrupt(std::string why) override;
  void close(sandbox::closed_fn done) override;

  /// What another sandbox must be opened with to go on as this one. After `open`.
  [[nodiscard]] sandbox_spec spec() const;

  /// The zygote that it is a fork of. After `open`.
  [[nodiscard]] unsigned zygote() const noexcept { return zygote_; }

  /// Sends the worker its end of a pipe. False when it cannot be sent.
  [[nodiscard]] bool send_pipe(const unique_fd& end);

  /// Some group has run out of memory: ends this sandbox if it was its own.
  void check_memory();

private:
  struct verdict {
    snippet_end end = snippet_end::killed;
    std::string reason;
    time_point decided;
  };

  void doom(snippet_end end, std::string reason) override;
  bool send_interrupt() override;
  void account(sandbox_usage& usage) override { group_.account(usage); }
  void handshake_done(result<void> outcome) override;

  [[nodiscard]] result<zygote_client::channels> make_channels();
  [[nodiscard]] spawn_request make_request() const;
  void on_spawned(result<spawned> got);
  bool insist_on_layers();
  void on_open_timeout();
  void finish_open(result<void> outcome);

  void watch_control();
  void watch_exit();
  void on_control();
  void read_notes();
  void on_note(const init_note& note, unique_fd socket);
  void start_proxy(unique_fd listener);

  [[nodiscard]] bool go_back(const verdict& v);
  void on_restored(int status);
  void end_life(verdict v);

  void cancel_timers();
  void kill_now();
  void prepare();
  [[nodiscard]] bool cannot_fail(const sandbox_spec& spec) const;
  void on_exit();
  void remove_groups(unsigned tries);
  void on_dead();
  [[nodiscard]] verdict own_end() const;
  void verify();
  [[nodiscard]] std::string memory_text() const;
  void report_closed();
  [[nodiscard]] snippet_outcome killed_outcome(const verdict& v);

  std::shared_ptr<zygote_pool> pool_;
  std::shared_ptr<jail_core> core_;
  sandbox_limits limits_;
  bool checkpoints_ = false;
  bool network_ = false;
  unsigned slot_ = 0;
  opened_fn opened_;
  bool prepared_ = false;
  bool was_open_ = false;
  bool brought_files_ = false;
  time_point asked_;
  std::vector<timer_id> timers_;
  error open_error_{errc::unavailable, ""};

  pid_t pid_ = 0;
  unsigned zygote_ = 0;
  bool dead_ = false;
  std::shared_ptr<worker_link> link_;
  control_channel control_;
  channel exit_;  ///< pidfd
  std::unique_ptr<egress_proxy> proxy_;
  sandbox::connection_fn connection_fn_;
  sandbox_group group_;

  std::optional<verdict> verdict_;
  std::optional<verdict> going_back_;  ///< asked init to restore the checkpoint, for this reason
  unsigned lives_ = 0;
  std::optional<std::int32_t> worker_status_;
  int init_status_ = 0;
  bool reaped_ = false;
  bool out_of_memory_ = false;
  rusage usage_{};
  close_report report_;
  std::vector<sandbox::closed_fn> closers_;
};

}  // namespace troupe::jail

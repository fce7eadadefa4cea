#pragma once
// One sandbox of the process executor, from the request to the verified end.

#include "executors/control_channel.hpp"
#include "executors/process/keeper_spawn.hpp"
#include "executors/process/keeper_wire.hpp"
#include "executors/process/process_core.hpp"
#include "executors/worker_link.hpp"
#include "executors/worker_session.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <signal.h>
#include <sys/resource.h>

namespace troupe::process {

/// Keeps itself alive until its processes and its directory are gone. Reactor's thread only.
class process_session final : public worker_session,
                              public std::enable_shared_from_this<process_session>,
                              private worker_owner {
public:
  using opened_fn = std::function<void(result<void>)>;

  process_session(std::shared_ptr<process_core> core, const sandbox_limits& limits);
  ~process_session() override;

  /// Starts it; `done` once. Errors as executor::open.
  void open(const sandbox_spec& spec, opened_fn done);

  void listen(sandbox::output_fn output, sandbox::call_fn call) override;
  void begin(std::unique_ptr<worker_request> request) override;
  void answer(call_id id, const result<json>& value) override;
  void interrupt(std::string why) override;
  void close(sandbox::closed_fn done) override;

private:
  struct verdict {
    snippet_end end = snippet_end::killed;
    std::string reason;
    time_point decided;
  };

  void doom(snippet_end end, std::string reason) override;
  bool send_interrupt() override;
  void account(sandbox_usage&) override {}
  void handshake_done(result<void> outcome) override;

  [[nodiscard]] result<void> start();
  [[nodiscard]] result<void> start_keeper();
  [[nodiscard]] result<void> make_directory();
  void remove_empty_directory();
  [[nodiscard]] result<sandbox_ends> make_channels();
  [[nodiscard]] bool watch(kept k);
  void finish_open(result<void> outcome);

  void watch_control();
  void watch_exit();
  void on_control();
  void read_notes();
  void on_note(const keeper_note& note);

  void end_now();
  void limit_time();
  void on_exit();
  void on_kept_end();
  [[nodiscard]] bool start_sweeper();
  void on_dead();
  [[nodiscard]] verdict own_end() const;
  [[nodiscard]] close_report verify() const;
  [[nodiscard]] snippet_outcome killed_outcome(const verdict& v);
  void report_closed();

  std::shared_ptr<process_core> core_;
  sandbox_limits limits_;
  opened_fn opened_;
  bool was_open_ = false;
  time_point asked_;
  std::optional<timer_id> open_timer_;
  std::optional<timer_id> keeper_timer_;
  error open_error_{errc::unavailable, ""};

  keeper_program keeper_;
  pid_t worker_ = 0;  ///< its pid, and its session's
  bool sweeping_ = false;
  bool dead_ = false;
  std::shared_ptr<worker_link> link_;
  control_channel control_;
  channel exit_;  ///< pidfd of the keeper, or of the sweeper after it

  std::optional<verdict> verdict_;
  std::optional<std::int32_t> worker_status_;
  int status_ = SIGKILL;  ///< of the last keeper, as wait reports it
  rusage usage_{};
  close_report report_;
  std::vector<sandbox::closed_fn> closers_;
};

}  // namespace troupe::process

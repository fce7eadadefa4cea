#pragma once
// One sandbox of the jail, from the request to the verified end.

#include "executors/executor.hpp"
#include "executors/frame_splitter.hpp"
#include "executors/jail/channel.hpp"
#include "executors/jail/jail_core.hpp"
#include "executors/output_log.hpp"
#include "executors/worker_protocol.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace troupe::jail {

/// Keeps itself alive until its processes are gone. Reactor's thread only.
class jail_session : public std::enable_shared_from_this<jail_session> {
public:
  using opened_fn = std::function<void(result<void>)>;
  using done_fn = sandbox::done_fn;

  jail_session(std::shared_ptr<jail_core> core, sandbox_spec spec);
  ~jail_session();

  /// Creates the sandbox; `done` once. Errors as executor::open.
  void open(opened_fn done);

  void listen(sandbox::output_fn output, sandbox::call_fn call);

  /// One snippet at a time; the caller has made sure. In a dead sandbox it ends at once.
  void run(const snippet& code, done_fn done);

  void answer(call_id id, const result<json>& value);
  void interrupt(std::string why);
  void close(sandbox::closed_fn done);

  [[nodiscard]] std::string isolation() const;

  /// Called when the sandbox is about to die, or has died: it takes no more snippets.
  std::function<void()> on_gone;

private:
  struct running;
  struct verdict {
    snippet_end end = snippet_end::killed;
    std::string reason;
    time_point decided;
  };

  // opening
  [[nodiscard]] result<zygote_client::channels> make_channels();
  [[nodiscard]] spawn_request make_request() const;
  void queue_handshake();
  void on_spawned(result<spawned> got);
  void on_handshake(const worker::done& reply);
  void on_open_timeout();
  void finish_open(result<void> outcome);

  // channels
  void watch_data();
  void watch_output();
  void watch_control();
  void watch_exit();
  void on_data();
  void on_output();
  void on_control();
  void read_notes();
  void on_note(const init_note& note);
  bool read_output();
  void drain_output();
  void expect_death();
  void take_output(std::string_view bytes);
  void send(const std::string& frame);
  void flush();

  // frames
  void take_frames();
  void on_done(const worker::done& reply);
  void on_call(const worker::call& call, std::size_t bytes);
  void complete();

  // deadlines
  void set_deadlines(const snippet& code);
  void cancel_timers();
  void after_deadline(time_point when, std::function<void(jail_session&)> fn);

  // the end
  void doom(snippet_end end, std::string reason);
  void kill_now();
  void on_exit();
  void on_dead();
  [[nodiscard]] verdict own_end() const;
  [[nodiscard]] close_report verify() const;
  void report_closed();
  void deliver(snippet_outcome outcome);
  [[nodiscard]] snippet_outcome killed_outcome(const verdict& v);

  std::shared_ptr<jail_core> core_;
  sandbox_spec spec_;
  unsigned slot_ = 0;
  opened_fn opened_;
  bool was_open_ = false;
  time_point asked_;
  std::vector<timer_id> timers_;
  std::uint32_t handshake_left_ = 0;
  error open_error_{errc::unavailable, ""};

  pid_t pid_ = 0;
  bool spawning_ = false;
  bool dead_ = false;
  channel data_;
  channel control_;
  channel output_;
  channel exit_;
  frame_splitter frames_;
  std::string to_send_;
  std::size_t sent_ = 0;  ///< of to_send_, which is emptied from time to time
  bool sending_ = false;

  sandbox::output_fn output_fn_;
  sandbox::call_fn call_fn_;
  output_log log_;
  std::unique_ptr<running> running_;
  std::uint32_t last_snippet_ = 0;
  micros cpu_before_{0};

  std::optional<verdict> verdict_;
  std::optional<std::int32_t> worker_status_;
  int init_status_ = 0;
  bool reaped_ = false;
  rusage usage_{};
  close_report report_;
  std::vector<sandbox::closed_fn> closers_;
};

}  // namespace troupe::jail

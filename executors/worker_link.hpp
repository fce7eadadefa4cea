#pragma once
// The host's end of one worker: its frames, its output, its tool calls and deadlines. The same for
// every backend whose worker is executors/worker on the other end of a stream socket.

#include "executors/channel.hpp"
#include "executors/executor.hpp"
#include "executors/frame_splitter.hpp"
#include "executors/output_log.hpp"
#include "executors/worker_request.hpp"
#include "runtime/net/reactor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// As "1.5 s", rounded.
[[nodiscard]] std::string seconds_text(micros span);

/// What a backend does for its worker_link. It outlives the link's open channels.
class worker_owner {
public:
  /// The worker has broken a limit or the protocol, and must die. Ends with worker_link::close.
  virtual void doom(snippet_end end, std::string reason) = 0;

  /// SIGINT to the worker; answered by worker_link::interrupted once it is pending there. False
  /// when it cannot be sent.
  virtual bool send_interrupt() = 0;

  /// What the backend knows better of a request that has just ended than its worker says.
  virtual void account(sandbox_usage& usage) = 0;

  /// Files and tools have arrived, or why they could not.
  virtual void handshake_done(result<void> outcome) = 0;

protected:
  ~worker_owner() = default;
};

/// Reactor's thread only.
class worker_link : public std::enable_shared_from_this<worker_link> {
public:
  worker_link(reactor& io, worker_owner& owner, const sandbox_limits& limits);
  ~worker_link();

  /// Our ends of the stream socket and of the pipe that is the worker's stdout and stderr. Those of
  /// an earlier attempt are closed.
  void attach(unique_fd data, unique_fd output);

  /// There is a worker: listens to it.
  void start();

  /// Has it do, ahead of its use, what makes a first snippet slow: pages are copied on first touch.
  void warm_up();

  /// Sends it files, tools and rules, now or once it has started. Its limits are those it has.
  void shake_hands(const sandbox_spec& spec);

  /// True when the last shake_hands() told it all that this spec would.
  [[nodiscard]] bool knows(const sandbox_spec& spec) const;

  /// Goes by this spec, which the worker knows.
  void take_on(const sandbox_spec& spec);

  void listen(sandbox::output_fn output, sandbox::call_fn call);

  /// One request at a time; the caller has made sure. After `stop` it only waits for `end`.
  void begin(std::unique_ptr<worker_request> request);

  void answer(call_id id, const result<json>& value);
  /// False when there is nothing to interrupt, or it cannot be done.
  bool interrupt(std::string why);
  void interrupted();

  /// True when it has done all that it was asked for.
  [[nodiscard]] bool idle() const noexcept { return handshake_left_ == 0 && !open_; }

  /// The worker's Python. After its reply to init.
  [[nodiscard]] const worker::interpreter& python() const noexcept { return python_; }

  /// What it was made ready with, but for the files.
  [[nodiscard]] const sandbox_spec& spec() const noexcept { return spec_; }

  /// What was printed and no request has taken.
  [[nodiscard]] std::string unheard_output() const { return log_.text(); }

  /// True while a snippet runs that asked for a checkpoint.
  [[nodiscard]] bool checkpointed() const noexcept;

  /// Nothing that the worker says counts any more.
  void stop() noexcept { stopped_ = true; }

  /// The worker is another: a checkpoint, restored, with `data` as its fresh channel.
  void resume(unique_fd data);

  /// What the dead have left in the pipe: never more than the pipe holds.
  void drain_output();

  /// True while some process still holds the far end. The worker's processes should be gone.
  [[nodiscard]] bool held() const;

  /// Stops, and closes both channels.
  void close();

  /// Ends the open request, whose worker died: `death` has the end, its reason, and what it cost.
  void end(snippet_outcome death);

  /// The part of `total`, the worker's CPU time so far, that no earlier request has been charged.
  micros charge_cpu(micros total);

private:
  struct open_request;

  void watch_data();
  void watch_output();
  void on_data();
  void on_output();
  bool read_output();
  void take_output(std::string_view bytes);
  void on_flood();
  void expect_death();
  void send(const std::string& frame);
  void flush();
  void take_frames();
  void take_handshake(const worker::done& reply);
  void on_done(worker::done reply);
  void on_call(const worker::call& call, std::size_t bytes);
  [[nodiscard]] result<void> admit(const worker::call& call, std::size_t bytes);
  void send_next(worker::done* last);
  void complete();
  void deliver(request_end end);
  void set_deadlines();
  void arm_deadlines();
  void cancel_deadlines();
  [[nodiscard]] bool takes_own_time(std::string_view tool) const;
  void stop_clock(std::uint64_t call);
  void go_on_clock(std::uint64_t call);
  void after_deadline(time_point when, std::function<void(worker_link&)> fn);

  reactor& io_;
  worker_owner& owner_;
  sandbox_spec spec_;
  channel data_;
  channel output_;
  frame_splitter frames_;
  std::string to_send_;
  std::size_t sent_ = 0;  ///< of to_send_, which is emptied from time to time
  bool sending_ = false;
  bool started_ = false;
  bool stopped_ = false;
  bool hears_output_ = false;
  unsigned life_ = 0;  ///< counts the workers
  std::uint32_t handshake_left_ = 0;
  bool initialised_ = false;  ///< has been told tools and rules: those of spec_
  worker::interpreter python_;

  sandbox::output_fn output_fn_;
  sandbox::call_fn call_fn_;
  output_log log_;
  std::unique_ptr<open_request> open_;
  std::uint32_t last_id_ = 0;
  micros cpu_charged_{0};
};

}  // namespace troupe

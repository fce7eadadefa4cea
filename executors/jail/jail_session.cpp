#include "executors/jail/jail_session.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t handshake_ids = 0x8000'0000;
constexpr std::size_t read_bytes = 64u << 10;
constexpr int reads_per_turn = 8;  // then others have their turn on the reactor
constexpr std::size_t max_queued_bytes = 256u << 20;

// Calls of one snippet that wait for answers: more than 64 processes and threads never make.
constexpr std::size_t max_open_calls = 64;

/// How long a worker that closed its socket may take to die before it counts as a violation.
constexpr auto end_of_file_grace = 250ms;

/// Host uids that systemd's table leaves to nobody: 0x70000000 up to 2^31. A process takes 32768
/// of them by its pid, a sandbox two by its slot.
/// Source  systemd's UIDS-GIDS.md.
constexpr std::uint32_t first_host_uid = 0x7000'0000;
constexpr std::uint32_t uids_per_process = 32'768;
constexpr std::uint32_t process_ranges = 8'192;

micros since(time_point start) {
  return std::chrono::duration_cast<micros>(steady_clock::now() - start);
}

micros to_micros(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + micros{t.tv_usec};
}

std::string seconds_text(micros span) {
  auto text = std::to_string(static_cast<double>(span.count()) / 1e6);
  return text.substr(0, text.find('.') + 2) + " s";
}

error system_error(std::string what) {
  auto number = errno;
  return {errc::unavailable, std::move(what) + ": " + errno_text(number)};
}

}  // namespace

struct jail_session::running {
  std::uint32_t id = 0;
  done_fn done;
  time_point started;
  std::vector<timer_id> timers;
  std::uint32_t tool_calls = 0;
  std::size_t call_bytes = 0;
  std::vector<std::uint64_t> open_calls;
  bool interrupted = false;
  std::string interrupt_reason;
  unsigned unacknowledged = 0;  ///< interrupts that may still strike
  std::optional<worker::done> reply;
};

jail_session::jail_session(std::shared_ptr<jail_core> core, sandbox_spec spec)
  : core_{std::move(core)}, spec_{std::move(spec)}, asked_{steady_clock::now()}, data_{core_->io},
    control_{core_->io}, output_{core_->io}, exit_{core_->io}, frames_{spec_.limits.frame_bytes},
    log_{spec_.limits.shown_bytes} {}

jail_session::~jail_session() = default;

// --- opening
// ----------------------------------------------------------------------------------------

void jail_session::open(opened_fn done) {
  opened_ = std::move(done);
  slot_ = core_->take_slot();
  core_->opening(shared_from_this());
  queue_handshake();
  timers_.push_back(core_->io.in(spec_.limits.open_timeout, [weak = weak_from_this()] {
    if (auto self = weak.lock(); self && self->opened_)
      self->on_open_timeout();
  }));
  spawning_ = true;
  core_->zygote->spawn(
    make_request(), [self = shared_from_this()] { return self->make_channels(); },
    [self = shared_from_this()](result<spawned> got) { self->on_spawned(std::move(got)); });
}

void jail_session::on_open_timeout() {
  error e{errc::timeout,
          "the sandbox was not ready after " + seconds_text(spec_.limits.open_timeout)};
  if (spawning_)
    core_->zygote->restart();
  doom(snippet_end::killed, e.detail);
  finish_open(fail(std::move(e)));
}

result<zygote_client::channels> jail_session::make_channels() {
  int data[2], control[2], output[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, data) != 0)
    return fail(system_error("socketpair for a sandbox"));
  unique_fd our_data{data[0]}, their_data{data[1]};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
    return fail(system_error("socketpair for a sandbox"));
  unique_fd our_control{control[0]}, their_control{control[1]};
  if (::pipe2(output, O_CLOEXEC) != 0)
    return fail(system_error("pipe for a sandbox"));
  unique_fd our_output{output[0]}, their_output{output[1]};
  ::fcntl(our_output.get(), F_SETFL, O_NONBLOCK);
  for (auto* c : {&data_, &control_, &output_})
    c->close();  // of an attempt that failed
  data_.assign(std::move(our_data));
  control_.assign(std::move(our_control));
  output_.assign(std::move(our_output));
  return zygote_client::channels{std::move(their_data), std::move(their_control),
                                 std::move(their_output)};
}

spawn_request jail_session::make_request() const {
  const auto& limits = spec_.limits;
  spawn_request r;
  auto range = static_cast<std::uint32_t>(::getpid()) % process_ranges;
  r.init_uid = first_host_uid + range * uids_per_process + slot_ * 2;
  r.worker_uid = r.init_uid + 1;
  r.processes = limits.processes;
  r.open_files = limits.open_files;
  r.frame_bytes = static_cast<std::uint32_t>(limits.frame_bytes);
  r.memory_bytes = limits.memory_bytes;
  r.file_bytes = limits.file_bytes;
  r.work_bytes = limits.work_bytes;
  r.tmp_bytes = limits.tmp_bytes;
  return r;
}

/// The requests wait in the socket before the worker exists: no round trip is lost.
void jail_session::queue_handshake() {
  for (const auto& file : spec_.files)
    for (auto& frame : worker::put_frames(handshake_ids + handshake_left_, file)) {
      to_send_ += frame;
      ++handshake_left_;
    }
  to_send_ += worker::init_frame(handshake_ids + handshake_left_, spec_);
  ++handshake_left_;
  spec_.files.clear();
}

void jail_session::on_spawned(result<spawned> got) {
  spawning_ = false;
  if (!got) {
    if (!verdict_)
      open_error_ = got.error();
    on_dead();
    return;
  }
  pid_ = got->pid;
  if (!got->pidfd)  // no descriptor was free to receive it
    got->pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  exit_.assign(std::move(got->pidfd));
  if (!exit_.open()) {
    open_error_ = {errc::unavailable, "no descriptor is free for a sandbox"};
    kill_now();
    ::waitpid(pid_, &init_status_, __WALL);
    reaped_ = true;
    on_dead();
    return;
  }
  watch_exit();
  if (verdict_) {
    kill_now();
    return;
  }
  watch_control();
  watch_data();
  watch_output();
  flush();
}

void jail_session::on_handshake(const worker::done& reply) {
  if (!reply.failure.empty()) {
    open_error_ = {errc::invalid_argument, reply.failure};
    doom(snippet_end::killed, reply.failure);
    return;
  }
  if (--handshake_left_ == 0)
    finish_open({});
}

void jail_session::finish_open(result<void> outcome) {
  auto done = std::exchange(opened_, nullptr);
  if (!done)
    return;
  if (outcome) {
    was_open_ = true;
    cancel_timers();
    core_->opened(since(asked_));
  } else {
    core_->open_failed();
  }
  done(std::move(outcome));
}

// --- channels
// ---------------------------------------------------------------------------------------

void jail_session::watch_data() {
  data_.when_readable([self = shared_from_this()] { self->on_data(); });
}

void jail_session::watch_output() {
  output_.when_readable([self = shared_from_this()] { self->on_output(); });
}

void jail_session::watch_control() {
  control_.when_readable([self = shared_from_this()] { self->on_control(); });
}

void jail_session::watch_exit() {
  exit_.when_readable([self = shared_from_this()] { self->on_exit(); });
}

void jail_session::on_data() {
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn && !verdict_ && !dead_; ++turn) {
    auto size = ::recv(data_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) {
      frames_.feed({buffer.data(), static_cast<std::size_t>(size)});
      take_frames();
      if (static_cast<std::size_t>(size) < buffer.size())
        break;
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      expect_death();
      return;
    } else {
      break;
    }
  }
  if (!verdict_ && !dead_)
    watch_data();
}

/// A dying worker's socket closes first. One that goes on without it is cut off from us.
void jail_session::expect_death() {
  timers_.push_back(core_->io.in(end_of_file_grace, [weak = weak_from_this()] {
    if (auto self = weak.lock())
      self->doom(snippet_end::protocol, "the code closed the sandbox's channel to the host");
  }));
}

void jail_session::on_output() {
  if (read_output() && !dead_)
    watch_output();
}

/// Takes what is there; false at end of file, or once the limit has been passed.
bool jail_session::read_output() {
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    auto size = ::read(output_.fd(), buffer.data(), buffer.size());
    if (size < 0)
      return errno == EAGAIN || errno == EINTR;
    if (size == 0)
      return false;
    take_output({buffer.data(), static_cast<std::size_t>(size)});
    if (log_.total() > spec_.limits.output_bytes)
      return false;
  }
  return true;
}

/// What the dead have left in the pipe: never more than the pipe holds.
void jail_session::drain_output() {
  std::array<char, read_bytes> buffer;
  for (ssize_t size; (size = ::read(output_.fd(), buffer.data(), buffer.size())) > 0;) {
    std::string_view bytes{buffer.data(), static_cast<std::size_t>(size)};
    log_.append(bytes);
    if (output_fn_)
      output_fn_(bytes);
  }
}

void jail_session::take_output(std::string_view bytes) {
  log_.append(bytes);
  if (output_fn_)
    output_fn_(bytes);
  if (log_.total() > spec_.limits.output_bytes)
    doom(snippet_end::output_limit,
         "the code printed more than " + std::to_string(spec_.limits.output_bytes) + " bytes");
}

void jail_session::on_control() {
  read_notes();
  if (control_.open() && !dead_)
    watch_control();
}

void jail_session::read_notes() {
  init_note note;
  for (;;) {
    auto size = ::recv(control_.fd(), &note, sizeof note, MSG_DONTWAIT);
    if (size == sizeof note) {
      on_note(note);
      continue;
    }
    // The last end has closed: init has gone, or is going. Its exit tells the rest.
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
      control_.close();
    return;
  }
}

void jail_session::on_note(const init_note& note) {
  std::string stage{note.stage, ::strnlen(note.stage, sizeof note.stage)};
  switch (note.kind) {
  case note_kind::failed:
    open_error_ = {errc::unavailable,
                   "the sandbox cannot be set up: " + stage + ": " + errno_text(note.value)};
    break;
  case note_kind::lacking:
    core_->note_lacking(note.value);
    break;
  case note_kind::exited:
    worker_status_ = note.value;
    break;
  case note_kind::interrupted:
    if (running_ && running_->unacknowledged > 0 && --running_->unacknowledged == 0
        && running_->reply)
      complete();
    break;
  }
}

void jail_session::send(const std::string& frame) {
  to_send_ += frame;
  if (to_send_.size() - sent_ > max_queued_bytes)
    doom(snippet_end::protocol, "the code takes no answers from its tools");
  else if (!sending_)
    flush();
}

void jail_session::flush() {
  sending_ = false;
  while (sent_ < to_send_.size()) {
    auto size = ::send(data_.fd(), to_send_.data() + sent_, to_send_.size() - sent_,
                       MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0)
      break;
    sent_ += static_cast<std::size_t>(size);
  }
  auto blocked = sent_ < to_send_.size() && errno == EAGAIN;
  if (sent_ > to_send_.size() / 2)  // rarely: moving the rest for every piece would be quadratic
    to_send_.erase(0, std::exchange(sent_, 0));
  if (blocked) {
    sending_ = true;
    data_.when_writable([self = shared_from_this()] { self->flush(); });
  }
}

// --- frames
// -----------------------------------------------------------------------------------------

void jail_session::take_frames() {
  while (!verdict_ && !dead_) {
    auto next = frames_.next();
    if (!next) {
      doom(snippet_end::protocol, "malformed data from the sandbox: " + next.error().detail);
      return;
    }
    if (!*next)
      return;
    auto parsed = worker::parse(**next);
    if (!parsed) {
      doom(snippet_end::protocol, "malformed data from the sandbox: " + parsed.error().detail);
      return;
    }
    if (auto* call = std::get_if<worker::call>(&*parsed))
      on_call(*call, (*next)->size());
    else
      on_done(std::get<worker::done>(*parsed));
  }
}

void jail_session::on_done(const worker::done& reply) {
  if (handshake_left_ > 0 && reply.id >= handshake_ids) {
    on_handshake(reply);
    return;
  }
  if (!running_ || running_->reply || reply.id != running_->id) {
    doom(snippet_end::protocol, "a reply that nobody asked for");
    return;
  }
  if (frames_.pending() > 0) {
    doom(snippet_end::protocol, "data after the reply");
    return;
  }
  running_->reply = reply;
  if (running_->unacknowledged == 0)
    complete();
}

void jail_session::on_call(const worker::call& call, std::size_t bytes) {
  if (!running_ || running_->reply || call.snippet != running_->id) {
    doom(snippet_end::protocol, "a tool call while no snippet was running");
    return;
  }
  auto limit = spec_.limits.tool_calls;
  if (++running_->tool_calls > limit) {
    if (running_->tool_calls > 2ull * limit)
      doom(snippet_end::protocol, "tool calls without end");
    else
      send(
        worker::answer_frame(call.id, fail(errc::over_budget, "more than " + std::to_string(limit)
                                                                + " tool calls in one snippet")));
    return;
  }
  running_->call_bytes += bytes;
  if (running_->call_bytes > spec_.limits.call_bytes) {
    send(worker::answer_frame(
      call.id, fail(errc::over_budget, "more than " + std::to_string(spec_.limits.call_bytes)
                                         + " bytes in the tool calls of one snippet")));
    return;
  }
  auto known = std::ranges::any_of(spec_.tools, [&](auto& t) { return t.name == call.tool; });
  if (!known || !call_fn_) {
    send(
      worker::answer_frame(call.id, fail(errc::not_found, "there is no tool '" + call.tool + "'")));
    return;
  }
  if (running_->open_calls.size() >= max_open_calls) {
    send(worker::answer_frame(call.id,
                              fail(errc::over_budget, "more than " + std::to_string(max_open_calls)
                                                        + " tool calls at once")));
    return;
  }
  running_->open_calls.push_back(call.id);
  call_fn_({call_id{call.id}, call.tool, call.arguments});
}

void jail_session::answer(call_id id, const result<json>& value) {
  if (!running_ || running_->reply || verdict_ || dead_)
    return;
  if (std::erase(running_->open_calls, id.value) > 0)
    send(worker::answer_frame(id.value, value));
}

/// The snippet has replied, and no interrupt is under way any more.
void jail_session::complete() {
  // What was printed before the reply is in the pipe by now.
  read_output();
  if (verdict_)
    return;
  auto& r = *running_;
  auto wall = since(r.started);
  snippet_outcome o;
  o.end = r.reply->end;
  o.result = std::move(r.reply->result);
  o.is_final = r.reply->is_final;
  o.error = std::move(r.reply->error);
  if (o.end == snippet_end::raised && r.interrupted && o.error
      && o.error->type == "KeyboardInterrupt") {
    o.end = snippet_end::soft_timeout;
    o.reason = r.interrupt_reason;
  }
  // The worker's own statement, held to what the machine could have done.
  static const auto cores = std::max(1u, std::thread::hardware_concurrency());  // reads a file
  auto most = wall * cores;
  o.usage.cpu = std::clamp(r.reply->cpu - cpu_before_, micros{0}, std::max(most, micros{0}));
  cpu_before_ = std::max(cpu_before_, r.reply->cpu);
  o.usage.max_rss_bytes = r.reply->max_rss_bytes;
  deliver(std::move(o));
}

void jail_session::deliver(snippet_outcome outcome) {
  auto r = std::move(running_);
  for (auto id : r->timers)
    core_->io.cancel(id);
  outcome.logs = log_.text();
  outcome.logs_dropped = log_.dropped();
  log_ = output_log{spec_.limits.shown_bytes};
  outcome.usage.wall = since(r->started);
  outcome.usage.tool_calls = r->tool_calls;
  r->done(std::move(outcome));
}

// --- running
// ----------------------------------------------------------------------------------------

void jail_session::listen(sandbox::output_fn output, sandbox::call_fn call) {
  output_fn_ = std::move(output);
  call_fn_ = std::move(call);
}

void jail_session::run(const snippet& code, done_fn done) {
  running_ = std::make_unique<running>();
  running_->id = ++last_snippet_;
  running_->done = std::move(done);
  running_->started = steady_clock::now();
  if (dead_) {
    deliver(killed_outcome(*verdict_));
    return;
  }
  if (verdict_)
    return;  // dying: the end delivers
  set_deadlines(code);
  send(worker::run_frame(running_->id, code));
}

void jail_session::set_deadlines(const snippet& code) {
  if (code.soft_deadline != never)
    after_deadline(code.soft_deadline, [](jail_session& s) {
      s.interrupt("interrupted at the time limit after "
                  + seconds_text(since(s.running_->started)));
    });
  if (code.hard_deadline != never)
    after_deadline(code.hard_deadline, [](jail_session& s) {
      s.doom(snippet_end::hard_timeout,
             "killed at the time limit after " + seconds_text(since(s.running_->started)));
    });
}

/// Forgotten when the running snippet ends first.
void jail_session::after_deadline(time_point when, std::function<void(jail_session&)> fn) {
  auto id = core_->io.at(when, [weak = weak_from_this(), of = running_->id, fn = std::move(fn)] {
    auto self = weak.lock();
    if (self && self->running_ && self->running_->id == of)
      fn(*self);
  });
  running_->timers.push_back(id);
}

void jail_session::cancel_timers() {
  for (auto id : timers_)
    core_->io.cancel(id);
  timers_.clear();
}

void jail_session::interrupt(std::string why) {
  if (!running_ || running_->reply || verdict_ || dead_)
    return;
  if (::send(control_.fd(), &interrupt_order, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
    return;  // init is gone or swamped: the hard deadline decides
  running_->interrupted = true;
  running_->interrupt_reason = std::move(why);
  ++running_->unacknowledged;
}

// --- the end
// ----------------------------------------------------------------------------------------

void jail_session::doom(snippet_end end, std::string reason) {
  if (verdict_ || dead_)
    return;
  verdict_ = verdict{end, std::move(reason), steady_clock::now()};
  if (on_gone)
    on_gone();
  kill_now();
}

/// The kernel kills everything in the pid namespace with its first process.
void jail_session::kill_now() {
  if (exit_.open())
    ::syscall(SYS_pidfd_send_signal, exit_.fd(), SIGKILL, nullptr, 0);
  else if (pid_ > 0 && !reaped_)
    ::kill(pid_, SIGKILL);
}

void jail_session::on_exit() {
  siginfo_t info{};
  auto waited =
    ::syscall(SYS_waitid, P_PIDFD, exit_.fd(), &info, WEXITED | __WALL | WNOHANG, &usage_);
  if (waited == 0 && info.si_pid == 0) {
    watch_exit();
    return;
  }
  // ECHILD: the program around us reaps all children itself; gone is gone.
  if (waited == 0)
    init_status_ = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
  reaped_ = true;
  if (control_.open())
    read_notes();  // the exit note is worth more than a kill that raced it
  drain_output();
  on_dead();
}

void jail_session::on_dead() {
  auto keep = shared_from_this();
  if (dead_)
    return;
  auto known = verdict_.has_value();
  if (!known)
    verdict_ = own_end();
  report_ = verify();
  dead_ = true;
  cancel_timers();
  for (auto* c : {&data_, &control_, &output_, &exit_})
    c->close();
  core_->free_slot(slot_);
  if (!known && on_gone)
    on_gone();
  core_->ended(keep, was_open_, report_);
  if (opened_) {
    if (open_error_.detail.empty())
      open_error_.detail = verdict_->reason;
    finish_open(fail(open_error_));
  }
  if (running_)
    deliver(killed_outcome(*verdict_));
  report_closed();
  // Whoever listens may hold us in turn.
  output_fn_ = nullptr;
  call_fn_ = nullptr;
  on_gone = nullptr;
}

/// The end of a sandbox that nobody here killed.
jail_session::verdict jail_session::own_end() const {
  auto now = steady_clock::now();
  if (pid_ == 0)
    return {snippet_end::killed, open_error_.detail, now};
  if (!worker_status_)
    return {snippet_end::killed, "the sandbox was killed from outside", now};
  auto status = *worker_status_;
  if (WIFEXITED(status))
    return {snippet_end::exited,
            "the code ended the interpreter with exit status "
              + std::to_string(WEXITSTATUS(status)),
            now};
  auto number = WTERMSIG(status);
  auto reason =
    "the interpreter crashed: signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
  if (number == SIGKILL)
    reason = "the interpreter was killed: the machine is out of memory, or the code killed it";
  return {snippet_end::crashed, reason, now};
}

/// Init is reaped only after the kernel has ended all other processes of its pid namespace; the
/// ends of file of both channels say the same, whatever a number in /proc says.
close_report jail_session::verify() const {
  close_report r;
  r.exit_status = init_status_;
  r.teardown = since(verdict_->decided);
  r.processes_gone = pid_ == 0 || reaped_;
  if (pid_ != 0 && exit_.open()
      && (::syscall(SYS_pidfd_send_signal, exit_.fd(), 0, nullptr, 0) == 0 || errno != ESRCH)) {
    r.processes_gone = false;
    r.detail = "process " + std::to_string(pid_) + " still takes signals";
  }
  char byte = 0;
  if (pid_ != 0 && data_.open() && ::recv(data_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0
      && errno == EAGAIN) {
    r.processes_gone = false;
    r.detail = "some process still holds the sandbox's channel";
  }
  // Its mounts were in a namespace of its own, which ends with its last process.
  r.mounts_gone = r.processes_gone;
  return r;
}

snippet_outcome jail_session::killed_outcome(const verdict& v) {
  snippet_outcome o;
  o.end = v.end;
  o.reason = v.reason;
  auto total = to_micros(usage_.ru_utime) + to_micros(usage_.ru_stime);
  o.usage.cpu = std::max(micros{0}, total - cpu_before_);
  cpu_before_ = std::max(cpu_before_, total);
  o.usage.max_rss_bytes = static_cast<std::uint64_t>(usage_.ru_maxrss) << 10;
  return o;
}

void jail_session::close(sandbox::closed_fn done) {
  if (done)
    closers_.push_back(std::move(done));
  if (dead_)
    report_closed();
  else
    doom(snippet_end::killed, "the sandbox was closed");
}

void jail_session::report_closed() {
  auto all = std::exchange(closers_, {});
  for (auto& done : all)
    done(report_);
}

std::string jail_session::isolation() const {
  return core_->info().isolation;
}

}  // namespace troupe::jail

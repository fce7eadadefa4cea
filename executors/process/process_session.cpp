#include "executors/process/process_session.hpp"

#include "executors/jail/wire.hpp"
#include "executors/process/worker_image.hpp"
#include "runtime/core/text.hpp"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::process {
namespace {

using namespace std::chrono_literals;

/// A keeper takes at most 5 s to end processes, then as long as removing files takes. One that
/// takes longer is stopped, or was stopped by the code, and another does its work.
constexpr auto keeper_grace = 15s;

constexpr std::size_t complaint_bytes = 500;

micros since(time_point start) {
  return std::chrono::duration_cast<micros>(steady_clock::now() - start);
}

micros to_micros(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + micros{t.tv_usec};
}

error system_error(std::string what) {
  auto number = errno;
  return {errc::unavailable, std::move(what) + ": " + errno_text(number)};
}

std::string status_text(int status) {
  if (WIFEXITED(status))
    return "exit status " + std::to_string(WEXITSTATUS(status));
  auto number = WTERMSIG(status);
  return "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

}  // namespace

process_session::process_session(std::shared_ptr<process_core> core, const sandbox_limits& limits)
  : core_{std::move(core)}, limits_{limits}, asked_{steady_clock::now()},
    link_{std::make_shared<worker_link>(core_->io, static_cast<worker_owner&>(*this), limits)},
    control_{core_->io}, exit_{core_->io} {}

process_session::~process_session() = default;

// --- opening
// ----------------------------------------------------------------------------------------

void process_session::open(const sandbox_spec& spec, opened_fn done) {
  opened_ = std::move(done);
  core_->opening(shared_from_this());
  open_timer_ = core_->io.in(limits_.open_timeout, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || !self->opened_)
      return;
    error e{errc::timeout, "the sandbox was not ready in time"};
    self->doom(snippet_end::killed, e.detail);
    self->finish_open(fail(std::move(e)));
  });
  link_->shake_hands(spec);
  if (auto started = start(); !started) {
    open_error_ = started.error();
    verdict_ = verdict{snippet_end::killed, open_error_.detail, steady_clock::now()};
    if (keeper_.directory.empty() || !start_sweeper())
      on_dead();
  }
}

result<void> process_session::start() {
  if (auto made = make_directory(); !made)
    return made;
  if (auto started = start_keeper(); !started) {
    remove_empty_directory();
    return started;
  }
  if (!exit_.open())
    return fail(errc::unavailable, "no descriptor is free for a sandbox");
  watch_control();
  link_->start();
  return {};
}

/// Errors  there was no keeper, not for a moment.
result<void> process_session::start_keeper() {
  if (!core_->python())
    return fail(core_->python().error());
  auto image = core_->image();
  if (!image)
    return fail(image.error());
  auto channels = make_channels();
  if (!channels)
    return fail(channels.error());
  auto argv = worker_command(*core_->python(), keeper_.directory + "/work", limits_.frame_bytes);
  auto started = spawn_keeper(keeper_, argv, *channels, *image);
  if (!started)
    return fail(started.error());
  static_cast<void>(watch(std::move(*started)));
  return {};
}

/// Private to this user; the keeper removes it.
result<void> process_session::make_directory() {
  auto name = (core_->directory / "troupe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return fail(system_error("make a directory in " + core_->directory.string()
                             + " (set TMPDIR to one that can be written)"));
  keeper_ = {core_->keeper_path, name};
  for (const auto* inner : {"/work", "/tmp"}) {
    if (::mkdir((name + inner).c_str(), 0700) == 0)
      continue;
    auto why = system_error("make a directory in " + name);
    remove_empty_directory();
    return fail(std::move(why));
  }
  return {};
}

void process_session::remove_empty_directory() {
  for (const auto* inner : {"/work", "/tmp", ""})
    ::rmdir((keeper_.directory + inner).c_str());
  keeper_.directory.clear();
}

result<sandbox_ends> process_session::make_channels() {
  auto made = make_sandbox_channels();
  if (!made)
    return fail(made.error());
  auto& [ours, theirs] = *made;
  jail::spawn_request limits;
  limits.open_files = limits_.open_files;
  limits.memory_bytes = limits_.memory_bytes;
  limits.file_bytes = limits_.file_bytes;
  if (::send(ours.control.get(), &limits, sizeof limits, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return fail(system_error("tell a sandbox its limits"));
  control_.assign(std::move(ours.control));
  link_->attach(std::move(ours.data), std::move(ours.output));
  return std::move(theirs);
}

/// False when it cannot be watched, and has been ended.
bool process_session::watch(kept k) {
  exit_.assign(std::move(k.pidfd));
  if (exit_.open()) {
    watch_exit();
    return true;
  }
  ::kill(k.pid, SIGKILL);
  ::waitpid(k.pid, &status_, __WALL);
  return false;
}

void process_session::handshake_done(result<void> outcome) {
  if (outcome) {
    finish_open({});
    return;
  }
  open_error_ = outcome.error();
  doom(snippet_end::killed, open_error_.detail);
}

void process_session::finish_open(result<void> outcome) {
  auto done = std::exchange(opened_, nullptr);
  if (!done)
    return;
  core_->io.cancel(*open_timer_);
  if (outcome) {
    was_open_ = true;
    core_->opened(since(asked_), link_->python());
  } else {
    core_->open_failed();
  }
  done(std::move(outcome));
}

// --- the keeper's notes
// -----------------------------------------------------------------------------

void process_session::watch_control() {
  control_.when_readable([self = shared_from_this()] { self->on_control(); });
}

void process_session::watch_exit() {
  exit_.when_readable([self = shared_from_this()] { self->on_exit(); });
}

void process_session::on_control() {
  read_notes();
  if (control_.open() && !dead_)
    watch_control();
}

void process_session::read_notes() {
  keeper_note note;
  for (unique_fd none; control_.take(note, none);)
    on_note(note);
}

void process_session::on_note(const keeper_note& note) {
  switch (note.kind) {
  case note_kind::started:
    worker_ = note.value;
    break;
  case note_kind::failed:
    open_error_.detail = "the sandbox cannot be set up: "
                         + std::string{note.stage, ::strnlen(note.stage, sizeof note.stage)} + ": "
                         + errno_text(note.value);
    break;
  case note_kind::interrupted:
    link_->interrupted();
    break;
  case note_kind::exited:
    worker_status_ = note.value;
    break;
  }
}

// --- running
// ----------------------------------------------------------------------------------------

void process_session::listen(sandbox::output_fn output, sandbox::call_fn call) {
  link_->listen(std::move(output), std::move(call));
}

void process_session::begin(std::unique_ptr<worker_request> request) {
  link_->begin(std::move(request));
  if (dead_)
    link_->end(killed_outcome(*verdict_));
}

void process_session::answer(call_id id, const result<json>& value) {
  link_->answer(id, value);
}

void process_session::interrupt(std::string why) {
  link_->interrupt(std::move(why));
}

bool process_session::send_interrupt() {
  return control_.send(interrupt_order);
}

// --- the end
// ----------------------------------------------------------------------------------------

void process_session::doom(snippet_end end, std::string reason) {
  if (verdict_ || dead_)
    return;
  verdict_ = verdict{end, std::move(reason), steady_clock::now()};
  link_->stop();
  if (on_gone)
    on_gone();
  end_now();
}

/// The keeper ends everything when it hears no more from us.
void process_session::end_now() {
  if (control_.open())
    ::shutdown(control_.fd(), SHUT_WR);
  if (!exit_.open())
    return;
  ::syscall(SYS_pidfd_send_signal, exit_.fd(), SIGCONT, nullptr,
            0);  // the code may have stopped it
  limit_time();
}

void process_session::limit_time() {
  if (keeper_timer_)
    core_->io.cancel(*keeper_timer_);
  keeper_timer_ = core_->io.in(keeper_grace, [weak = weak_from_this()] {
    if (auto self = weak.lock(); self && self->exit_.open())
      ::syscall(SYS_pidfd_send_signal, self->exit_.fd(), SIGKILL, nullptr, 0);
  });
}

void process_session::on_exit() {
  siginfo_t info{};
  auto waited =
    ::syscall(SYS_waitid, P_PIDFD, exit_.fd(), &info, WEXITED | __WALL | WNOHANG, &usage_);
  if (waited == 0 && info.si_pid == 0) {
    watch_exit();
    return;
  }
  // ECHILD: the program around us reaps all children itself. Then nobody knows what is left.
  status_ = waited != 0                  ? SIGKILL
            : info.si_code == CLD_EXITED ? info.si_status << 8
                                         : info.si_status;
  exit_.close();
  if (control_.open())
    read_notes();
  link_->drain_output();
  on_kept_end();
}

/// A keeper that did not end by itself left its work undone.
void process_session::on_kept_end() {
  auto undone = !WIFEXITED(status_) || WEXITSTATUS(status_) > (left_processes | left_files);
  if (undone && !sweeping_) {
    if (!verdict_) {
      verdict_ = own_end();
      link_->stop();
      if (on_gone)
        on_gone();
    }
    if (start_sweeper())
      return;
  }
  on_dead();
}

/// False when it does not start.
bool process_session::start_sweeper() {
  sweeping_ = true;
  auto sweeper = spawn_sweeper(keeper_, worker_);
  if (!sweeper || !watch(std::move(*sweeper)))
    return false;
  limit_time();
  return true;
}

void process_session::on_dead() {
  auto keep = shared_from_this();
  if (dead_)
    return;
  auto known = verdict_.has_value();
  if (!known)
    verdict_ = own_end();
  report_ = verify();
  dead_ = true;
  if (keeper_timer_)
    core_->io.cancel(*keeper_timer_);
  link_->close();
  control_.close();
  exit_.close();
  if (!known && on_gone)
    on_gone();
  core_->ended(keep, was_open_, report_);
  if (opened_) {
    if (open_error_.detail.empty())
      open_error_.detail = verdict_->reason;
    finish_open(fail(open_error_));
  }
  link_->end(killed_outcome(*verdict_));
  report_closed();
  // Whoever listens may hold us in turn.
  link_->listen({}, {});
  on_gone = nullptr;
}

/// The end of a sandbox that nobody here ended.
process_session::verdict process_session::own_end() const {
  auto now = steady_clock::now();
  if (!worker_status_)
    return {snippet_end::killed, "the sandbox was killed from outside", now};
  auto status = *worker_status_;
  if (!was_open_)
    return {snippet_end::killed,
            *core_->python() + " ended with " + status_text(status) + " before it was ready: "
              + std::string{trim(utf8_prefix(link_->unheard_output(), complaint_bytes))},
            now};
  if (WIFEXITED(status))
    return {snippet_end::exited, "the code ended the interpreter with " + status_text(status), now};
  auto reason = "the interpreter crashed: " + status_text(status);
  if (WTERMSIG(status) == SIGKILL)
    reason = "the interpreter was killed: the machine is out of memory, or the code killed it";
  return {snippet_end::crashed, reason, now};
}

/// What the last keeper says counts: it has waited for every descendant, or looked at the whole
/// process table. The far end of the worker's channel says the same.
close_report process_session::verify() const {
  close_report r;
  auto never_was = keeper_.directory.empty();
  r.exit_status = never_was ? 0 : status_;
  r.teardown = since(verdict_->decided);
  r.cpu = to_micros(usage_.ru_utime) + to_micros(usage_.ru_stime);
  r.peak_memory_bytes = static_cast<std::uint64_t>(usage_.ru_maxrss) << 10;
  auto told = WIFEXITED(status_) ? WEXITSTATUS(status_) : left_processes | left_files;
  r.processes_gone = never_was || ((told & left_processes) == 0 && !link_->held());
  r.mounts_gone = never_was || (told & left_files) == 0;
  if (!r.processes_gone)
    r.detail = "a process of the sandbox may still run";
  else if (!r.mounts_gone)
    r.detail = "files are left in " + keeper_.directory;
  return r;
}

snippet_outcome process_session::killed_outcome(const verdict& v) {
  snippet_outcome o;
  o.end = v.end;
  o.reason = v.reason;
  o.usage.cpu = link_->charge_cpu(to_micros(usage_.ru_utime) + to_micros(usage_.ru_stime));
  o.usage.max_rss_bytes = static_cast<std::uint64_t>(usage_.ru_maxrss) << 10;
  return o;
}

void process_session::close(sandbox::closed_fn done) {
  if (done)
    closers_.push_back(std::move(done));
  if (dead_)
    report_closed();
  else
    doom(snippet_end::killed, "the sandbox was closed");
}

void process_session::report_closed() {
  auto all = std::exchange(closers_, {});
  for (auto& done : all)
    done(report_);
}

}  // namespace troupe::process

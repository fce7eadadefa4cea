#include "executors/jail/jail_session.hpp"

#include "executors/jail/jail_executor.hpp"
#include "executors/jail/jail_fork.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

using namespace std::chrono_literals;

/// Host uids that systemd's table leaves to nobody: 0x70000000 up to 2^31. A process takes 32768
/// of them by its pid, a sandbox two by its slot.
/// Source  systemd's UIDS-GIDS.md.
constexpr std::uint32_t first_host_uid = 0x7000'0000;
constexpr std::uint32_t uids_per_process = 32'768;
constexpr std::uint32_t process_ranges = 8'192;

micros since(time_point start) {
  return std::chrono::duration_cast<micros>(steady_clock::now() - start);
}

/// How long going back may take where nobody waits for a deadline.
constexpr millis restore_patience{2'000};

micros to_micros(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + micros{t.tv_usec};
}

}  // namespace

jail_session::jail_session(std::shared_ptr<zygote_pool> pool, const sandbox_spec& spec)
  : pool_{std::move(pool)}, core_{pool_->core()}, limits_{spec.limits},
    checkpoints_{spec.checkpoints}, network_{spec.network && pool_->profile().network},
    link_{std::make_shared<worker_link>(core_->io, static_cast<worker_owner&>(*this), spec.limits)},
    control_{core_->io}, exit_{core_->io} {}

jail_session::~jail_session() = default;

// --- opening
// ----------------------------------------------------------------------------------------

bool jail_session::fits(const sandbox_spec& spec) const {
  const auto& a = limits_;
  const auto& b = spec.limits;
  return checkpoints_ == spec.checkpoints && network_ == (spec.network && pool_->profile().network)
         && a.memory_bytes == b.memory_bytes && a.cpus == b.cpus && a.processes == b.processes
         && a.open_files == b.open_files && a.frame_bytes == b.frame_bytes
         && a.file_bytes == b.file_bytes && a.work_bytes == b.work_bytes
         && a.tmp_bytes == b.tmp_bytes;
}

void jail_session::open(const sandbox_spec& spec, opened_fn done) {
  opened_ = std::move(done);
  asked_ = steady_clock::now();
  limits_ = spec.limits;
  timers_.push_back(core_->io.in(limits_.open_timeout, [weak = weak_from_this()] {
    if (auto self = weak.lock(); self && self->opened_)
      self->on_open_timeout();
  }));
  auto at_once = cannot_fail(spec);
  brought_files_ = !spec.files.empty();
  if (at_once && link_->knows(spec))
    link_->take_on(spec);
  else
    link_->shake_hands(spec);
  if (!prepared_)
    prepare();
  else if (at_once)
    core_->io.post([self = shared_from_this()] {
      if (!self->gone())  // else its end is told as the failure that it is
        self->finish_open({});
    });
}

/// A worker that has been warmed up, and is asked for nothing that it might lack: who opens it need
/// not wait for its word.
bool jail_session::cannot_fail(const sandbox_spec& spec) const {
  pollfd end{exit_.fd(), POLLIN, 0};
  return link_->idle() && spec.files.empty() && pool_->installs(spec.imports)
         && ::poll(&end, 1, 0) == 0;
}

void jail_session::prepare_ahead(const sandbox_spec& wanted) {
  link_->warm_up();
  link_->shake_hands(wanted);
  prepare();
}

void jail_session::prepare() {
  prepared_ = true;
  slot_ = core_->take_slot();
  core_->opening(shared_from_this());
  if (auto made = group_.create(core_->groups, limits_, core_->oom_event()); !made) {
    open_error_ = made.error();
    on_dead();
    return;
  }
  pool_->zygote().spawn(
    make_request(), [self = shared_from_this()] { return self->make_channels(); },
    [self = shared_from_this()](result<spawned> got) { self->on_spawned(std::move(got)); });
}

void jail_session::on_open_timeout() {
  error e{errc::timeout, "the sandbox was not ready after " + seconds_text(limits_.open_timeout)
                           + "; on a busy machine, raise open_timeout in its profile"};
  doom(snippet_end::killed, e.detail);
  finish_open(fail(std::move(e)));
}

result<zygote_client::channels> jail_session::make_channels() {
  auto made = make_sandbox_channels();
  if (!made)
    return fail(made.error());
  auto groups = group_.entry();
  if (!groups)
    return fail(groups.error());
  auto& [ours, theirs] = *made;
  control_.close();  // of an attempt that failed
  control_.assign(std::move(ours.control));
  link_->attach(std::move(ours.data), std::move(ours.output));
  return zygote_client::channels{
    {std::move(theirs.data), std::move(theirs.control), std::move(theirs.output)},
    std::move(*groups)};
}

spawn_request jail_session::make_request() const {
  const auto& limits = limits_;
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
  r.checkpoints = checkpoints_ ? 1 : 0;
  r.network = network_ ? 1 : 0;
  return r;
}

void jail_session::on_spawned(result<spawned> got) {
  if (!got) {
    if (!verdict_)
      open_error_ = got.error();
    on_dead();
    return;
  }
  pid_ = got->pid;
  zygote_ = got->zygote;
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
  if (insist_on_layers())
    link_->start();
}

/// Once: code inside never holds the control socket, but init is inside too.
void jail_session::start_proxy(unique_fd listener) {
  if (proxy_ || !network_ || !listener)
    return;
  egress_proxy::options options;
  options.policy = *pool_->profile().network;
  options.limits.connections = max_sandbox_connections;
  options.on_connection = [this](const egress_record& r) {
    if (connection_fn_)
      connection_fn_(r);
  };
  auto proxy = egress_proxy::serve(core_->io, listener.release(), std::move(options));
  if (proxy) {
    proxy_ = std::move(*proxy);
    return;
  }
  open_error_ = proxy.error();
  doom(snippet_end::killed, open_error_.detail);
}

/// False, and the end, when the profile requires a layer that is missing.
bool jail_session::insist_on_layers() {
  auto checked = pool_->check_layers();
  if (checked)
    return true;
  open_error_ = checked.error();
  doom(snippet_end::killed, open_error_.detail);
  return false;
}

void jail_session::handshake_done(result<void> outcome) {
  read_notes();  // what it lacks was said before the worker began
  if (verdict_)
    return;
  if (outcome) {
    if (!opened_)  // made ahead
      group_.note_rest();
    if (!brought_files_)  // they may have been what was imported
      pool_->note_opened(link_->spec());
    finish_open({});
    return;
  }
  pool_->note_refused(link_->spec());
  open_error_ = outcome.error();
  doom(snippet_end::killed, open_error_.detail);
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

void jail_session::watch_control() {
  control_.when_readable([self = shared_from_this()] { self->on_control(); });
}

void jail_session::watch_exit() {
  exit_.when_readable([self = shared_from_this()] { self->on_exit(); });
}

void jail_session::on_control() {
  read_notes();
  if (control_.open() && !dead_)
    watch_control();
}

void jail_session::read_notes() {
  init_note note;
  for (unique_fd socket; control_.take(note, socket);)
    on_note(note, std::move(socket));
}

void jail_session::on_note(const init_note& note, unique_fd socket) {
  std::string stage{note.stage, ::strnlen(note.stage, sizeof note.stage)};
  switch (note.kind) {
  case note_kind::failed:
    open_error_ = {errc::unavailable,
                   "the sandbox cannot be set up: " + stage + ": " + errno_text(note.value)};
    break;
  case note_kind::lacking:
    pool_->note_lacking(note.value);
    insist_on_layers();
    break;
  case note_kind::exited:
    worker_status_ = note.value;
    break;
  case note_kind::restored:
    on_restored(note.value);
    break;
  case note_kind::no_checkpoint:
    if (auto lost = std::exchange(going_back_, std::nullopt))
      end_life(std::move(*lost));
    break;
  case note_kind::interrupted:
    link_->interrupted();
    break;
  case note_kind::listening:
    start_proxy(std::move(socket));
    break;
  }
}

void jail_session::answer(call_id id, const result<json>& value) {
  link_->answer(id, value);
}

// --- running
// ----------------------------------------------------------------------------------------

void jail_session::listen(sandbox::output_fn output, sandbox::call_fn call) {
  link_->listen(std::move(output), std::move(call));
}

void jail_session::begin(std::unique_ptr<worker_request> request) {
  link_->begin(std::move(request));
  if (dead_)
    link_->end(killed_outcome(*verdict_));
}

void jail_session::fork(const std::vector<sandbox_limits>& branches,
                        const sandbox::forked_fn& done) {
  fork_session(pool_, shared_from_this(), branches, done);
}

sandbox_spec jail_session::spec() const {
  auto s = link_->spec();
  s.checkpoints = checkpoints_;
  return s;
}

bool jail_session::send_pipe(const unique_fd& end) {
  return control_.send(branch_order, end.get());
}

void jail_session::cancel_timers() {
  for (auto id : timers_)
    core_->io.cancel(id);
  timers_.clear();
}

void jail_session::interrupt(std::string why) {
  link_->interrupt(std::move(why));
}

bool jail_session::send_interrupt() {
  return control_.send(interrupt_order);
}

// --- the end
// ----------------------------------------------------------------------------------------

void jail_session::doom(snippet_end end, std::string reason) {
  if (verdict_ || dead_ || going_back_)
    return;
  verdict v{end, std::move(reason), steady_clock::now()};
  // Whoever breaks the protocol is not asked to go back.
  auto may_go_back = end == snippet_end::hard_timeout || end == snippet_end::memory
                     || end == snippet_end::output_limit;
  if (may_go_back && link_->checkpointed() && go_back(v))
    return;
  end_life(std::move(v));
}

/// Asks init to kill the code and to go back to its checkpoint. False when it cannot be asked.
bool jail_session::go_back(const verdict& v) {
  if (!control_.send(restore_order))
    return false;
  link_->stop();
  going_back_ = v;
  auto patience = v.end == snippet_end::hard_timeout ? limits_.restore_timeout : restore_patience;
  core_->io.in(patience, [weak = weak_from_this(), life = lives_] {
    auto self = weak.lock();
    if (!self || self->lives_ != life)
      return;
    if (auto lost = std::exchange(self->going_back_, std::nullopt))
      self->end_life(std::move(*lost));
  });
  return true;
}

/// The worker is dead, alone, and its checkpoint waits for a fresh channel.
void jail_session::on_restored(int status) {
  if (verdict_ || dead_)
    return;
  auto known = std::exchange(going_back_, std::nullopt);
  out_of_memory_ = group_.out_of_memory();
  group_.forget_oom();
  worker_status_ = status;
  auto v = known ? std::move(*known) : own_end();
  if (!known && !link_->checkpointed()) {  // between snippets there is nothing to go back to
    end_life(std::move(v));
    return;
  }
  worker_status_.reset();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    end_life(std::move(v));
    return;
  }
  unique_fd ours{pair[0]}, theirs{pair[1]};
  if (!control_.send(resume_order, theirs.get())) {
    end_life(std::move(v));
    return;
  }
  ++lives_;
  link_->drain_output();
  link_->resume(std::move(ours));
  snippet_outcome o;
  o.end = v.end;
  o.reason = std::move(v.reason);
  o.restored = true;
  group_.count(o.usage);
  link_->end(std::move(o));
}

void jail_session::end_life(verdict v) {
  if (verdict_ || dead_)
    return;
  verdict_ = std::move(v);
  link_->stop();
  if (on_gone)
    on_gone();
  kill_now();
}

/// The kernel kills everything in the pid namespace with its first process.
void jail_session::kill_now() {
  group_.kill();
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
  link_->drain_output();
  remove_groups(0);
}

/// The kernel lets go of a group a moment after its last process.
void jail_session::remove_groups(unsigned tries) {
  constexpr unsigned most = 200;
  if (tries == 0) {
    group_.report(report_);
    out_of_memory_ = group_.out_of_memory();
  }
  if (group_.end() || tries == most) {
    on_dead();
    return;
  }
  core_->io.in(1ms, [self = shared_from_this(), tries] { self->remove_groups(tries + 1); });
}

void jail_session::check_memory() {
  if (!verdict_ && group_.out_of_memory())
    doom(snippet_end::memory, memory_text());
}

std::string jail_session::memory_text() const {
  constexpr std::uint64_t mib = 1u << 20, mb = 1'000'000;
  auto bytes = limits_.memory_bytes;
  auto size =
    bytes % mib == 0 ? std::to_string(bytes / mib) + " MiB" : std::to_string(bytes / mb) + " MB";
  return "the code used more than the " + size + " of memory that are allowed";
}

void jail_session::on_dead() {
  auto keep = shared_from_this();
  if (dead_)
    return;
  auto known = verdict_.has_value();
  if (!known)
    verdict_ = own_end();
  verify();
  dead_ = true;
  cancel_timers();
  proxy_.reset();
  link_->close();
  control_.close();
  exit_.close();
  core_->free_slot(slot_);
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
  connection_fn_ = nullptr;
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
  if (number == SIGKILL && out_of_memory_)
    return {snippet_end::memory, memory_text(), now};
  auto reason =
    "the interpreter crashed: signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
  if (number == SIGKILL)
    reason = "the interpreter was killed: the machine is out of memory, or the code killed it";
  return {snippet_end::crashed, reason, now};
}

/// Init is reaped only after the kernel has ended all other processes of its pid namespace; the
/// ends of file of both channels say the same, whatever a number in /proc says.
void jail_session::verify() {
  auto& r = report_;
  r.exit_status = init_status_;
  r.teardown = since(verdict_->decided);
  r.processes_gone = pid_ == 0 || reaped_;
  if (pid_ != 0 && exit_.open()
      && (::syscall(SYS_pidfd_send_signal, exit_.fd(), 0, nullptr, 0) == 0 || errno != ESRCH)) {
    r.processes_gone = false;
    r.detail = "process " + std::to_string(pid_) + " still takes signals";
  }
  if (pid_ != 0 && link_->held()) {
    r.processes_gone = false;
    r.detail = "some process still holds the sandbox's channel";
  }
  // Its mounts were in a namespace of its own, which ends with its last process.
  r.mounts_gone = r.processes_gone;
  if (group_) {
    r.groups_gone = group_.end();
    if (!r.groups_gone)
      r.detail = "its control group cannot be removed";
  } else {
    r.cpu = to_micros(usage_.ru_utime) + to_micros(usage_.ru_stime);
    r.peak_memory_bytes = static_cast<std::uint64_t>(usage_.ru_maxrss) << 10;
  }
}

snippet_outcome jail_session::killed_outcome(const verdict& v) {
  snippet_outcome o;
  o.end = v.end;
  o.reason = v.reason;
  o.usage.cpu = link_->charge_cpu(to_micros(usage_.ru_utime) + to_micros(usage_.ru_stime));
  o.usage.max_rss_bytes = report_.peak_memory_bytes;
  if (group_)
    o.usage.cpu = group_.charge(report_.cpu);
  return o;
}

void jail_session::close(sandbox::closed_fn done) {
  if (done)
    closers_.push_back(std::move(done));
  if (dead_)
    report_closed();
  else
    end_life({snippet_end::killed, "the sandbox was closed", steady_clock::now()});
}

void jail_session::report_closed() {
  auto all = std::exchange(closers_, {});
  for (auto& done : all)
    done(report_);
}

}  // namespace troupe::jail

#include "executors/worker_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t handshake_ids = 0x8000'0000;
constexpr std::size_t read_bytes = 64u << 10;
constexpr int reads_per_turn = 8;  // then others have their turn on the reactor
constexpr std::size_t max_queued_bytes = 256u << 20;

// Calls of one snippet that wait for answers: more than 64 processes and threads never make.
constexpr std::size_t max_open_calls = 64;

/// How long a command that prints too much may take to die.
constexpr auto flood_grace = 2s;

/// How long a worker that closed its socket may take to die before it counts as a violation.
constexpr auto end_of_file_grace = 250ms;

micros since(time_point start) {
  return std::chrono::duration_cast<micros>(steady_clock::now() - start);
}

}  // namespace

std::string seconds_text(micros span) {
  constexpr micros half_a_tenth{50'000};
  auto text = std::to_string(static_cast<double>((span + half_a_tenth).count()) / 1e6);
  return text.substr(0, text.find('.') + 2) + " s";
}

struct worker_link::open_request {
  std::unique_ptr<worker_request> what;
  std::uint32_t id = 0;  ///< of the frame that waits for its reply
  time_point started;
  std::vector<timer_id> timers;
  time_point soft = never;
  time_point hard = never;
  std::uint32_t tool_calls = 0;
  std::size_t call_bytes = 0;
  std::vector<std::uint64_t> open_calls;
  std::vector<std::uint64_t> own_time_calls;  ///< of open_calls those that stop the clock
  time_point stopped_at{};                    ///< when the first of them began
  bool interrupted = false;
  bool flooded = false;
  std::string interrupt_reason;
  unsigned unacknowledged = 0;  ///< interrupts that may still strike
  std::optional<worker::done> reply;
};

worker_link::worker_link(reactor& io, worker_owner& owner, const sandbox_limits& limits)
  : io_{io}, owner_{owner}, data_{io}, output_{io}, frames_{limits.frame_bytes},
    log_{limits.shown_bytes} {
  spec_.limits = limits;
}

worker_link::~worker_link() = default;

// --- channels
// ---------------------------------------------------------------------------------------

void worker_link::attach(unique_fd data, unique_fd output) {
  data_.close();
  output_.close();
  hears_output_ = false;
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  data_.assign(std::move(data));
  output_.assign(std::move(output));
}

void worker_link::start() {
  started_ = true;
  watch_data();
  watch_output();
  flush();
}

void worker_link::resume(unique_fd data) {
  data_.close();
  data_.assign(std::move(data));
  frames_ = frame_splitter{spec_.limits.frame_bytes};
  to_send_.clear();
  sent_ = 0;
  sending_ = false;
  cpu_charged_ = micros{0};
  stopped_ = false;
  ++life_;
  watch_data();
  watch_output();
}

void worker_link::close() {
  stop();
  data_.close();
  output_.close();
}

bool worker_link::held() const {
  char byte = 0;
  return data_.open() && ::recv(data_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0
         && errno == EAGAIN;
}

void worker_link::watch_data() {
  data_.when_readable([self = shared_from_this()] { self->on_data(); });
}

void worker_link::watch_output() {
  if (!std::exchange(hears_output_, true))
    output_.when_readable([self = shared_from_this()] { self->on_output(); });
}

void worker_link::on_data() {
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn && !stopped_; ++turn) {
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
  if (!stopped_)
    watch_data();
}

/// A dying worker's socket closes first. One that goes on without it is cut off from us.
void worker_link::expect_death() {
  io_.in(end_of_file_grace, [weak = weak_from_this(), life = life_] {
    if (auto self = weak.lock(); self && !self->stopped_ && self->life_ == life)
      self->owner_.doom(snippet_end::protocol, "the code closed the sandbox's channel to the host");
  });
}

void worker_link::on_output() {
  hears_output_ = false;
  if (read_output())
    watch_output();
}

/// Takes what is there; false at end of file, or when a flood is to be read no further.
bool worker_link::read_output() {
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    auto size = ::read(output_.fd(), buffer.data(), buffer.size());
    if (size < 0)
      return errno == EAGAIN || errno == EINTR;
    if (size == 0)
      return false;
    take_output({buffer.data(), static_cast<std::size_t>(size)});
    if (log_.total() > spec_.limits.output_bytes) {
      on_flood();
      return false;
    }
  }
  return true;
}

/// The pipe is left full meanwhile: whoever floods it waits there for his end.
void worker_link::on_flood() {
  auto amount = "more than " + std::to_string(spec_.limits.output_bytes) + " bytes";
  auto spared = open_ && open_->what->stops_at_flood();
  if (spared && (open_->flooded || open_->reply))
    return;
  if (!spared || !interrupt("killed: it printed " + amount)) {
    owner_.doom(snippet_end::output_limit, "the code printed " + amount);
    return;
  }
  open_->flooded = true;
  after_deadline(steady_clock::now() + flood_grace, [amount](worker_link& l) {
    l.owner_.doom(snippet_end::output_limit, "the code printed " + amount);
  });
}

void worker_link::drain_output() {
  std::array<char, read_bytes> buffer;
  for (ssize_t size; (size = ::read(output_.fd(), buffer.data(), buffer.size())) > 0;)
    take_output({buffer.data(), static_cast<std::size_t>(size)});
}

void worker_link::take_output(std::string_view bytes) {
  log_.append(bytes);
  if (output_fn_)
    output_fn_(bytes);
}

void worker_link::send(const std::string& frame) {
  to_send_ += frame;
  if (to_send_.size() - sent_ > max_queued_bytes)
    owner_.doom(snippet_end::protocol, "the code takes no answers from its tools");
  else if (!sending_)
    flush();
}

void worker_link::flush() {
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

void worker_link::warm_up() {
  to_send_ += worker::warm_frame(handshake_ids + handshake_left_);
  ++handshake_left_;
  if (started_)
    flush();
}

/// The requests may wait before the worker exists: no round trip is lost.
void worker_link::shake_hands(const sandbox_spec& spec) {
  for (const auto& file : spec.files)
    for (auto& frame : worker::put_frames(handshake_ids + handshake_left_, file)) {
      to_send_ += frame;
      ++handshake_left_;
    }
  to_send_ += worker::init_frame(handshake_ids + handshake_left_, spec);
  ++handshake_left_;
  initialised_ = true;
  take_on(spec);
  if (started_)
    flush();
}

bool worker_link::knows(const sandbox_spec& spec) const {
  auto same = [](const tool_spec& a, const tool_spec& b) {
    return a.name == b.name && a.description == b.description && a.ends_run == b.ends_run
           && a.parameters == b.parameters;
  };
  return initialised_ && spec.files.empty() && spec.imports == spec_.imports
         && std::ranges::equal(spec.tools, spec_.tools, same);
}

void worker_link::take_on(const sandbox_spec& spec) {
  spec_ = spec;
  spec_.files.clear();
  log_ = output_log{spec_.limits.shown_bytes};
}

void worker_link::take_handshake(const worker::done& reply) {
  if (reply.python)
    python_ = *reply.python;
  if (!reply.failure.empty())
    owner_.handshake_done(fail(errc::invalid_argument, reply.failure));
  else if (--handshake_left_ == 0)
    owner_.handshake_done({});
}

void worker_link::take_frames() {
  while (!stopped_) {
    auto next = frames_.next();
    if (next && !*next)
      return;
    auto parsed = next ? worker::parse(**next) : fail(next.error());
    if (!parsed) {
      owner_.doom(snippet_end::protocol,
                  "malformed data from the sandbox: " + parsed.error().detail);
      return;
    }
    if (auto* call = std::get_if<worker::call>(&*parsed))
      on_call(*call, (*next)->size());
    else
      on_done(std::move(std::get<worker::done>(*parsed)));
  }
}

void worker_link::on_done(worker::done reply) {
  if (handshake_left_ > 0 && reply.id >= handshake_ids) {
    take_handshake(reply);
    return;
  }
  if (!open_ || open_->reply || reply.id != open_->id) {
    owner_.doom(snippet_end::protocol, "a reply that nobody asked for");
    return;
  }
  if (frames_.pending() > 0) {
    owner_.doom(snippet_end::protocol, "data after the reply");
    return;
  }
  open_->reply = std::move(reply);
  if (open_->unacknowledged == 0)
    complete();
}

void worker_link::on_call(const worker::call& call, std::size_t bytes) {
  if (!open_ || open_->reply || call.snippet != open_->id || !open_->what->takes_calls()) {
    owner_.doom(snippet_end::protocol, "a tool call while no snippet was running");
    return;
  }
  if (++open_->tool_calls > 2ull * spec_.limits.tool_calls) {
    owner_.doom(snippet_end::protocol, "tool calls without end");
    return;
  }
  if (auto admitted = admit(call, bytes); !admitted) {
    send(worker::answer_frame(call.id, fail(admitted.error())));
    return;
  }
  open_->open_calls.push_back(call.id);
  if (takes_own_time(call.tool))
    stop_clock(call.id);
  call_fn_({call_id{call.id}, call.tool, call.arguments});
}

/// Errors  over_budget: too many calls, or too large ones; not_found: no such tool.
result<void> worker_link::admit(const worker::call& call, std::size_t bytes) {
  const auto& limits = spec_.limits;
  auto& r = *open_;
  r.call_bytes += bytes;
  if (r.tool_calls > limits.tool_calls)
    return fail(errc::over_budget,
                "more than " + std::to_string(limits.tool_calls) + " tool calls in one snippet");
  if (r.call_bytes > limits.call_bytes)
    return fail(errc::over_budget, "more than " + std::to_string(limits.call_bytes)
                                     + " bytes in the tool calls of one snippet");
  auto known = std::ranges::any_of(spec_.tools, [&](auto& t) { return t.name == call.tool; });
  if (!known || !call_fn_)
    return fail(errc::not_found, "there is no tool '" + call.tool + "'");
  if (r.open_calls.size() >= max_open_calls)
    return fail(errc::over_budget,
                "more than " + std::to_string(max_open_calls) + " tool calls at once");
  return {};
}

void worker_link::answer(call_id id, const result<json>& value) {
  if (!open_ || open_->reply || stopped_)
    return;
  if (std::erase(open_->open_calls, id.value) == 0)
    return;
  go_on_clock(id.value);
  send(worker::answer_frame(id.value, value));
}

/// The worker has replied, and no interrupt is under way any more.
void worker_link::complete() {
  // What was printed before the reply is in the pipe by now.
  read_output();
  if (!stopped_)
    send_next(&*open_->reply);
}

void worker_link::send_next(worker::done* last) {
  auto frame = open_->what->next(last_id_ + 1, last);
  if (!frame) {
    owner_.doom(snippet_end::protocol, "malformed data from the sandbox: " + frame.error().detail);
    return;
  }
  if (!*frame) {
    deliver({.reply = std::move(open_->reply)});
    return;
  }
  open_->id = ++last_id_;
  open_->reply.reset();
  set_deadlines();
  send(**frame);
}

micros worker_link::charge_cpu(micros total) {
  auto fresh = std::max(total - cpu_charged_, micros{0});
  cpu_charged_ = std::max(cpu_charged_, total);
  return fresh;
}

void worker_link::end(snippet_outcome death) {
  if (open_)
    deliver({.lost = death.end,
             .restored = death.restored,
             .reason = std::move(death.reason),
             .usage = death.usage});
}

void worker_link::deliver(request_end end) {
  cancel_deadlines();
  auto r = std::move(open_);
  end.usage.wall = since(r->started);
  if (end.reply) {
    // The worker's own statement, held to what the machine could have done.
    static const auto cores = std::max(1u, std::thread::hardware_concurrency());  // reads a file
    end.usage.cpu =
      std::min(charge_cpu(end.reply->cpu), std::max(end.usage.wall * cores, micros{0}));
    end.usage.max_rss_bytes = end.reply->max_rss_bytes;
    owner_.account(end.usage);
    end.reason = std::move(r->interrupt_reason);
  }
  end.usage.tool_calls = r->tool_calls;
  end.interrupted = r->interrupted;
  end.flooded = r->flooded;
  if (r->what->takes_output()) {
    end.output = log_.text();
    end.output_dropped = log_.dropped();
    log_ = output_log{spec_.limits.shown_bytes};
  }
  if (!stopped_)
    watch_output();  // a flood ends it
  r->what->finish(std::move(end));
}

// --- running
// ----------------------------------------------------------------------------------------

void worker_link::listen(sandbox::output_fn output, sandbox::call_fn call) {
  output_fn_ = std::move(output);
  call_fn_ = std::move(call);
}

void worker_link::begin(std::unique_ptr<worker_request> request) {
  open_ = std::make_unique<open_request>();
  open_->what = std::move(request);
  open_->started = steady_clock::now();
  if (!stopped_)
    send_next(nullptr);
}

bool worker_link::checkpointed() const noexcept {
  return open_ && open_->what->checkpointed();
}

void worker_link::cancel_deadlines() {
  for (auto id : open_->timers)
    io_.cancel(id);
  open_->timers.clear();
}

void worker_link::set_deadlines() {
  open_->soft = open_->what->soft_deadline();
  open_->hard = open_->what->hard_deadline(steady_clock::now());
  arm_deadlines();
}

void worker_link::arm_deadlines() {
  cancel_deadlines();
  if (open_->soft != never)
    after_deadline(open_->soft, [](worker_link& l) {
      l.interrupt("interrupted at the time limit after " + seconds_text(since(l.open_->started)));
    });
  if (open_->hard != never)
    after_deadline(open_->hard, [](worker_link& l) {
      l.owner_.doom(snippet_end::hard_timeout,
                    "killed at the time limit after " + seconds_text(since(l.open_->started)));
    });
}

bool worker_link::takes_own_time(std::string_view tool) const {
  return std::ranges::any_of(spec_.tools, [&](auto& t) { return t.own_time && t.name == tool; });
}

/// Whoever is called takes as long as its own limits allow.
void worker_link::stop_clock(std::uint64_t call) {
  auto& r = *open_;
  r.own_time_calls.push_back(call);
  if (r.own_time_calls.size() > 1)
    return;
  r.stopped_at = steady_clock::now();
  cancel_deadlines();
}

void worker_link::go_on_clock(std::uint64_t call) {
  auto& r = *open_;
  if (std::erase(r.own_time_calls, call) == 0 || !r.own_time_calls.empty())
    return;
  auto spent = steady_clock::now() - r.stopped_at;
  r.soft = after(r.soft, spent);
  r.hard = after(r.hard, spent);
  arm_deadlines();
}

/// Forgotten when the open request ends first.
void worker_link::after_deadline(time_point when, std::function<void(worker_link&)> fn) {
  auto id = io_.at(when, [weak = weak_from_this(), of = open_->id, fn = std::move(fn)] {
    auto self = weak.lock();
    if (self && !self->stopped_ && self->open_ && self->open_->id == of)
      fn(*self);
  });
  open_->timers.push_back(id);
}

bool worker_link::interrupt(std::string why) {
  if (!open_ || open_->reply || stopped_)
    return false;
  if (!owner_.send_interrupt())
    return false;  // it is gone or swamped: the hard deadline decides
  open_->interrupted = true;
  if (!open_->flooded)  // else that is why it ends
    open_->interrupt_reason = std::move(why);
  ++open_->unacknowledged;
  return true;
}

void worker_link::interrupted() {
  if (open_ && open_->unacknowledged > 0 && --open_->unacknowledged == 0 && open_->reply)
    complete();
}

}  // namespace troupe

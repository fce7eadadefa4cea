#include "runtime/host/mock_server.hpp"

#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include <time.h>

namespace troupe {
namespace {

constexpr millis probe_interval{50};

micros thread_cpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + micros{t.tv_nsec / 1000};
}

/// What lives on the server's thread. Timers and bodies hold it, so it outlasts the server.
struct mock_state : std::enable_shared_from_this<mock_state> {
  mock_state(mock_script script, const mock_server_settings& s, reactor& r)
    : settings{s}, io{r}, service{std::move(script), s.service, now()}, began{r.now()} {}

  const mock_server_settings settings;
  reactor& io;
  mock_service service;
  const time_point began;
  mock_stats stats{};

  [[nodiscard]] mock_time now() const { return {io.now(), wall_micros()}; }

  void handle(const server_request& request, const http_server::respond_fn& respond);
  void send(mock_turn turn, const http_server::respond_fn& respond,
            const std::shared_ptr<void>& presence);
  void hang_up(const mock_answer& answer, const http_server::respond_fn& respond,
               const std::shared_ptr<void>& presence);
  void count(const mock_turn& turn);
  [[nodiscard]] std::shared_ptr<void> enter();
  void probe();

  /// Runs `fn` after `wait`, and notes how late that was.
  template <class Fn>
  void later(micros wait, Fn fn) {
    auto due = after(io.now(), wait);
    io.at(due, [self = shared_from_this(), due, fn = std::move(fn)]() mutable {
      self->note_lag(due);
      fn();
    });
  }

  void note_lag(time_point due) {
    auto late = std::chrono::duration_cast<micros>(io.now() - due);
    stats.worst_lag = std::max(stats.worst_lag, late);
  }
};

/// The pieces of an answer, each at its time.
class timed_body {
public:
  timed_body(std::shared_ptr<mock_state> state, mock_answer answer, std::shared_ptr<void> presence)
    : state_{std::move(state)}, pieces_{std::move(answer.pieces)}, end_{answer.end},
      presence_{std::move(presence)} {}

  void give(const give_piece_fn& give) {
    auto wait = next_ < pieces_.size() ? pieces_[next_].wait : micros{0};
    auto piece = take();
    if (wait <= micros{0})
      give(std::move(piece));
    else
      state_->later(wait, [give, piece = std::move(piece)]() mutable { give(std::move(piece)); });
  }

private:
  body_piece take() {
    body_piece out;
    if (next_ < pieces_.size())
      out.bytes = std::move(pieces_[next_++].bytes);
    if (next_ < pieces_.size())
      return out;
    out.then = end_ == mock_answer::ending::whole ? body_piece::next::end
               : end_ == mock_answer::ending::cut ? body_piece::next::cut
                                                  : body_piece::next::reset;
    return out;
  }

  std::shared_ptr<mock_state> state_;
  std::vector<mock_piece> pieces_;
  mock_answer::ending end_;
  std::size_t next_ = 0;
  std::shared_ptr<void> presence_;
};

server_response busy_response() {
  server_response out;
  out.status = 503;
  out.headers = {{"content-type", "application/json"}};
  out.body = R"({"error":{"message":"the mock server has too many requests waiting","type":)"
             R"("server_error","param":null,"code":null}})";
  return out;
}

/// Counts a request as in flight for as long as somebody holds the result.
std::shared_ptr<void> mock_state::enter() {
  ++stats.in_flight;
  stats.peak_in_flight = std::max(stats.peak_in_flight, stats.in_flight);
  return {nullptr, [self = shared_from_this()](void*) { --self->stats.in_flight; }};
}

void mock_state::handle(const server_request& request, const http_server::respond_fn& respond) {
  ++stats.requests;
  if (stats.in_flight >= settings.max_in_flight) {
    ++stats.by_status[503];
    respond(busy_response());
    return;
  }
  auto turn = service.take({request.method, request.target, request.headers, request.body}, now(),
                           stats.in_flight);
  auto presence = enter();
  auto latency = turn.latency;
  if (latency <= micros{0})
    send(std::move(turn), respond, presence);
  else
    later(latency, [this, respond, presence, turn = std::make_shared<mock_turn>(std::move(turn))] {
      send(std::move(*turn), respond, presence);
    });
}

void mock_state::count(const mock_turn& turn) {
  if (turn.message)
    stats.tokens += turn.message->reply.usage;
  stats.limited += turn.limited ? 1 : 0;
  if (turn.fault)
    ++stats.faults[static_cast<std::size_t>(turn.fault->kind)];
}

void mock_state::send(mock_turn turn, const http_server::respond_fn& respond,
                      const std::shared_ptr<void>& presence) {
  count(turn);
  auto answer = service.bytes_of(std::move(turn));
  stats.streams += answer.streamed ? 1 : 0;
  ++stats.by_status[answer.no_answer ? 0 : answer.status];
  if (answer.no_answer) {
    hang_up(answer, respond, presence);
    return;
  }
  server_response out;
  out.status = answer.status;
  out.headers = std::move(answer.headers);
  if (answer.streamed) {
    auto body = std::make_shared<timed_body>(shared_from_this(), std::move(answer), presence);
    out.source = [body](const give_piece_fn& give) { body->give(give); };
  } else if (!answer.pieces.empty()) {
    out.body = std::move(answer.pieces.front().bytes);
  }
  respond(std::move(out));
}

void mock_state::hang_up(const mock_answer& answer, const http_server::respond_fn& respond,
                         const std::shared_ptr<void>& presence) {
  server_response out;
  out.drop = true;
  out.reset = answer.end == mock_answer::ending::reset;
  if (answer.hang <= micros{0})
    respond(std::move(out));
  else
    later(answer.hang, [respond, presence, out] { respond(out); });
}

/// Work that has no latency sets no timers: this one shows how far the thread is behind.
void mock_state::probe() {
  later(probe_interval, [this] { probe(); });
}

}  // namespace

struct mock_server::impl {
  std::string address;
  reactor io;
  std::shared_ptr<mock_state> state;
  std::unique_ptr<http_server> server;
};

mock_server::mock_server(std::unique_ptr<impl> i) : impl_{std::move(i)} {}

result<std::unique_ptr<mock_server>> mock_server::start(mock_script script,
                                                        const mock_server_settings& settings) {
  auto made = std::make_unique<impl>();
  made->address = settings.address;
  made->state = std::make_shared<mock_state>(std::move(script), settings, made->io);
  auto listening = http_server::listen(
    made->io,
    {.address = settings.address, .port = settings.port, .stuck_after = settings.stuck_after},
    [state = made->state](const server_request& request, const http_server::respond_fn& respond) {
      state->handle(request, respond);
    });
  if (!listening)
    return fail(listening.error());
  made->server = std::move(*listening);
  made->io.post([state = made->state] { state->probe(); });
  return std::unique_ptr<mock_server>{new mock_server{std::move(made)}};
}

mock_server::~mock_server() {
  impl_->server.reset();
  impl_->io.stop();
}

std::uint16_t mock_server::port() const noexcept {
  return impl_->server->port();
}

std::string mock_server::url() const {
  auto& at = impl_->address;
  auto host = at.find(':') == std::string::npos ? at : "[" + at + "]";
  return "http://" + host + ":" + std::to_string(port());
}

mock_stats mock_server::stats() {
  std::promise<mock_stats> answer;
  auto ready = answer.get_future();
  impl_->io.post([&] {
    auto& kept = impl_->state->stats;
    auto out = kept;
    kept.worst_lag = micros{0};
    out.wall = std::chrono::duration_cast<micros>(impl_->io.now() - impl_->state->began);
    out.cpu = thread_cpu();
    out.connections = impl_->server->accepted();
    out.open = impl_->server->open();
    answer.set_value(std::move(out));
  });
  return ready.get();
}

}  // namespace troupe

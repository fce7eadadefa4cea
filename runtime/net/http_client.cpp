#include "runtime/net/address_book.hpp"
#include "runtime/net/dial.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_connection.hpp"
#include "runtime/net/idle_pool.hpp"
#include "runtime/net/on_reactor.hpp"
#include "runtime/net/proxy_tunnel.hpp"
#include "runtime/net/request_head.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

using connection_ptr = std::shared_ptr<http_connection>;

/// One send, from the caller's thread to its done.
struct call {
  http_client::ticket id = 0;
  std::string peer;                   ///< what a connection may be reused for
  const proxy_server* via = nullptr;  ///< the limits' own
  std::shared_ptr<const outgoing> out;
  time_point deadline = never;
  http_stream stream;
  http_client::done_fn done;
  result<void> sendable;
  time_point last_piece;
  timer_id silence_timer = 0;
  timer_id deadline_timer = 0;
  timer_id connect_timer = 0;
  std::shared_ptr<dialing> dial;  ///< while its connection is being made
  connection_ptr on;              ///< while it has a connection
  bool reused = false;            ///< `on` carried an exchange before
  bool fresh_only = false;        ///< its first try met a connection that was already closed
  bool sent = false;              ///< bytes of it may have reached the peer
};

using call_ptr = std::shared_ptr<call>;

/// How long an answer that nobody needs any more may hold its connection.
constexpr millis linger{1'000};

/// Source: RFC 9110, section 9.2.2.
bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE"
         || method == "OPTIONS" || method == "TRACE";
}

std::string peer_of(const http_request& r, const proxy_server* via) {
  if (via == nullptr || r.to.scheme == "https")
    return peer_name(r.to);
  return to_string(*via);  // its connections carry requests for any host
}

std::string where(const call& c) {
  if (c.dial)
    return c.dial->where();
  return std::string{to_string(c.on ? c.on->phase() : http_phase::queued)};
}

}  // namespace

// Everything below runs on the reactor's thread, except where it says otherwise.
struct http_client::impl : std::enable_shared_from_this<http_client::impl> {
  impl(reactor& r, http_client_limits l, std::shared_ptr<name_resolver> names)
    : io{r}, limits{std::move(l)},
      addresses{std::make_shared<address_book>(r, names ? std::move(names) : system_resolver())},
      idle{std::make_shared<idle_pool>(r, limits.max_idle_per_peer, limits.idle_timeout,
                                       [this](http_connection& c) { drop(c); })} {}

  reactor& io;
  const http_client_limits limits;
  std::shared_ptr<address_book> addresses;

  std::mutex mutex;  // guards what callers of any thread touch: the next three
  std::vector<call_ptr> arrived;
  std::vector<ticket> cancelled;
  bool woken = false;

  std::once_flag tls_once;
  result<tls_context> tls;
  std::atomic<ticket> last_ticket{0};
  std::atomic<std::uint64_t> requests{0}, opened{0}, stale{0};
  std::atomic<std::size_t> open{0};

  std::deque<call_ptr> incoming;  // a member: should an answer destroy us, shut() ends the rest
  std::unordered_map<ticket, call_ptr> calls;
  std::deque<call_ptr> queue;  // calls without a connection; ended ones are skipped
  std::shared_ptr<idle_pool> idle;
  bool closed = false;  // nothing is sent any more
  bool dead = false;    // nothing is called any more

  // -- any thread --------------------------------------------------------------------------------

  void submit(call_ptr c, ticket to_cancel) {
    {
      std::lock_guard lock{mutex};
      if (c)
        arrived.push_back(std::move(c));
      else
        cancelled.push_back(to_cancel);
      if (std::exchange(woken, true))
        return;
    }
    io.post([self = shared_from_this()] { self->drain(); });
  }

  /// Reading the system's roots takes milliseconds: done once, and not on the reactor.
  result<void> prepare_tls() {
    std::call_once(tls_once, [this] { tls = client_tls(limits.ca_file, limits.verify_peer); });
    return tls ? result<void>{} : fail(tls.error());
  }

  // -- calls -------------------------------------------------------------------------------------

  void drain() {
    if (dead)
      return;
    std::vector<ticket> cancels_in;
    {
      std::lock_guard lock{mutex};
      incoming.insert(incoming.end(), arrived.begin(), arrived.end());
      arrived.clear();
      cancels_in.swap(cancelled);
      woken = false;
    }
    while (!incoming.empty()) {
      auto c = std::move(incoming.front());
      incoming.pop_front();
      admit(std::move(c));
    }
    for (auto id : cancels_in)
      if (auto it = calls.find(id); it != calls.end())
        abandon(it->second, {errc::cancelled, "cancelled"});
    pump();
  }

  void admit(call_ptr c) {
    if (closed)
      return end(c, fail_call(*c, {errc::cancelled, "the client was closed"}));
    if (!c->sendable)
      return end(c, fail_call(*c, c->sendable.error()));
    if (c->deadline != never)
      c->deadline_timer = io.at(c->deadline, [weak = weak_from_this(), id = c->id] {
        if (auto self = weak.lock())
          self->expire(id, "the deadline passed ");
      });
    calls.emplace(c->id, c);
    queue.push_back(std::move(c));
  }

  void expire(ticket id, const std::string& what) {
    auto it = calls.find(id);
    if (it == calls.end())
      return;
    auto c = it->second;
    abandon(c, {errc::timeout, what + where(*c)});
    pump();
  }

  static tl::unexpected<http_failure> fail_call(const call& c, error e) {
    return tl::unexpected<http_failure>(
      http_failure{{e.code, peer_name(c.out->request.to) + ": " + e.detail}, c.sent});
  }

  /// Ends a call that is still on its way; its connection cannot be used again.
  // By value: the caller's may be the table's own.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  void abandon(call_ptr c, error why) {
    if (c->dial) {
      std::exchange(c->dial, nullptr)->close();
      --open;
    }
    if (c->on)
      drop(*std::exchange(c->on, nullptr));
    end(c, fail_call(*c, std::move(why)));
  }

  /// The last thing done for a call: `done` may do anything, even destroy the client.
  void end(const call_ptr& c, tl::expected<http_response, http_failure> how) {
    calls.erase(c->id);
    stop_timer(c->deadline_timer);
    stop_timer(c->connect_timer);
    stop_timer(c->silence_timer);
    c->out = nullptr;
    if (auto done = std::exchange(c->done, nullptr))
      done(std::move(how));
  }

  void stop_timer(timer_id& id) {
    if (id != 0)
      io.cancel(std::exchange(id, 0));
  }

  // -- connections -------------------------------------------------------------------------------

  /// Gives waiting calls their connections, in order, while there are any to be had.
  void pump() {
    while (!queue.empty() && !closed) {
      auto c = queue.front();
      if (!c->done) {  // ended while it waited
        queue.pop_front();
        continue;
      }
      auto connection = c->fresh_only ? nullptr : take_idle(c->peer);
      if (!connection && open >= limits.max_connections && !idle->drop_longest_idle())
        break;
      queue.pop_front();
      c->reused = connection != nullptr;
      if (connection)
        start(c, std::move(connection));
      else
        connect(c);
    }
  }

  void connect(const call_ptr& c) {
    ++open;
    ++opened;
    c->connect_timer = io.in(limits.connect_timeout, [weak = weak_from_this(), id = c->id] {
      if (auto self = weak.lock())
        self->expire(id, "no connection within "
                           + std::to_string(self->limits.connect_timeout.count())
                           + " ms, given up ");
    });
    const auto& to = c->out->request.to;
    dial_plan plan{to, {}, to.scheme == "https" ? *tls : nullptr, limits.verify_peer};
    if (c->via != nullptr)
      plan.via = *c->via;
    c->dial = std::make_shared<dialing>(io, addresses, std::move(plan));
    c->dial->start(
      [self = shared_from_this(), c](dialing::outcome how) { self->connected(c, std::move(how)); });
  }

  void connected(const call_ptr& c, dialing::outcome how) {
    stop_timer(c->connect_timer);
    if (!how) {
      abandon(c, how.error());
      pump();
      return;
    }
    c->dial = nullptr;
    start(c, std::make_shared<http_connection>(*std::move(how), limits.max_response_bytes));
  }

  void start(const call_ptr& c, connection_ptr connection) {
    c->on = std::move(connection);
    c->sent = true;
    http_connection::piece_fn piece;
    if (c->stream.piece)
      piece = [self = shared_from_this(), c](std::string_view bytes) {
        self->piece_came(c, bytes);
      };
    c->on->exchange(c->out, std::move(piece),
                    [self = shared_from_this(), c](http_connection::ended how) {
                      self->exchanged(c, std::move(how));
                    });
  }

  void piece_came(const call_ptr& c, std::string_view bytes) {
    if (!c->done)
      return;  // ended early
    c->last_piece = io.now();
    if (c->stream.silence > millis{0} && c->silence_timer == 0)
      watch_silence(c);
    if (!c->stream.piece(bytes) && c->done)
      end_early(c);
  }

  /// One timer for the whole stream, set anew when it is due: a timer per piece would cost more.
  void watch_silence(const call_ptr& c) {
    c->silence_timer =
      io.at(after(c->last_piece, c->stream.silence), [weak = weak_from_this(), id = c->id] {
        if (auto self = weak.lock())
          self->check_silence(id);
      });
  }

  void check_silence(ticket id) {
    auto it = calls.find(id);
    if (it == calls.end())
      return;
    auto& c = it->second;
    c->silence_timer = 0;
    auto limit = c->stream.silence;
    if (after(c->last_piece, limit) > io.now())
      watch_silence(c);
    else
      expire(id, "nothing came for " + std::to_string(limit.count()) + " ms ");
  }

  /// The caller has all it needs. The call stays in the table until the rest has been read.
  void end_early(const call_ptr& c) {
    stop_timer(c->silence_timer);
    stop_timer(c->deadline_timer);
    c->deadline_timer = io.in(linger, [weak = weak_from_this(), id = c->id] {
      if (auto self = weak.lock())
        self->expire(id, "");
    });
    auto& answer = c->on->answer();
    std::exchange(c->done, nullptr)(http_response{answer.status, answer.headers, {}});
  }

  void exchanged(const call_ptr& c, http_connection::ended how) {
    auto connection = std::exchange(c->on, nullptr);
    if (how.reusable)
      keep(c->peer, std::move(connection));
    else
      drop(*connection);
    if (how.unanswered && may_send_again(*c, how.unseen)) {
      retry_on_fresh(c, how.unseen);
      return;
    }
    // The next call's bytes leave before this one's owner gets to work.
    pump();
    if (!how.response)
      end(c, fail_call(*c, how.response.error()));
    else if (c->via != nullptr && how.response->status == 407)
      end(c, fail_call(*c, password_wanted(*c->via)));
    else
      end(c, std::move(*how.response));
  }

  static bool may_send_again(const call& c, bool unseen) {
    return c.reused && !c.fresh_only && (unseen || is_idempotent(c.out->request.method));
  }

  /// An idle connection that the server had closed: no fault of the call, which goes first again.
  void retry_on_fresh(const call_ptr& c, bool unseen) {
    ++stale;
    c->fresh_only = true;
    c->sent = !unseen;
    queue.push_front(c);
    pump();
  }

  void drop(http_connection& connection) {
    connection.close();
    --open;
  }

  void keep(const std::string& peer, connection_ptr connection) {
    if (closed)
      drop(*connection);
    else
      idle->keep(peer, std::move(connection));
  }

  connection_ptr take_idle(const std::string& peer) {
    while (auto connection = idle->take(peer)) {
      if (connection->is_quiet())
        return connection;
      ++stale;
      drop(*connection);
    }
    return nullptr;
  }

  /// Ends all; the last thing on the reactor's thread that calls a `done`.
  void shut() {
    closed = true;
    drain();
    addresses->close();
    while (!calls.empty())
      abandon(calls.begin()->second, {errc::cancelled, "the client was closed"});
    idle->clear();
    queue.clear();
    dead = true;
  }
};

http_client::http_client(reactor& io, http_client_limits limits,
                         std::shared_ptr<name_resolver> names)
  : impl_{std::make_shared<impl>(io, std::move(limits), std::move(names))} {}

http_client::~http_client() {
  run_on_reactor(impl_->io, [state = impl_] { state->shut(); });
}

http_client::ticket http_client::send(http_request request, time_point deadline, done_fn done) {
  return send(std::move(request), deadline, {}, std::move(done));
}

http_client::ticket http_client::send(http_request request, time_point deadline, http_stream how,
                                      done_fn done) {
  auto& s = *impl_;
  ++s.requests;
  auto c = std::make_shared<call>();
  auto id = c->id = ++s.last_ticket;
  c->sendable = check_request(request);
  if (auto via = s.limits.proxies.select(request.to); via)
    c->via = *via;
  else
    c->sendable = fail(via.error());
  c->peer = peer_of(request, c->via);
  if (request.to.scheme == "https" && c->sendable)
    c->sendable = s.prepare_tls();
  c->deadline = deadline;
  c->stream = std::move(how);
  c->done = std::move(done);
  auto header = request_head(request, request.to.scheme == "http" ? c->via : nullptr);
  request.headers = {};  // freed where it was made: the reactor's thread would pay more for it
  c->out = std::make_shared<const outgoing>(outgoing{std::move(header), std::move(request)});
  s.submit(std::move(c), 0);
  return id;
}

void http_client::cancel(ticket which) {
  impl_->submit(nullptr, which);
}

http_client_stats http_client::stats() const {
  auto& s = *impl_;
  return {.requests = s.requests,
          .connections_opened = s.opened,
          .stale_retries = s.stale,
          .open = s.open,
          .idle = s.idle->size()};
}

}  // namespace troupe

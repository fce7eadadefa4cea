#include "runtime/net/byte_stream.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_answer.hpp"
#include "runtime/net/http_reader.hpp"
#include "runtime/net/on_reactor.hpp"
#include "runtime/net/tcp_progress.hpp"
#include "runtime/net/tls.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/socket_base.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

namespace troupe {

struct http_server::impl : std::enable_shared_from_this<http_server::impl> {
  impl(reactor& r, options o, handler_fn h)
    : io{r}, opts{std::move(o)}, handler{std::move(h)}, acceptor{r.context()} {}

  class session;
  template <class Answer>
  class slot;
  using session_ptr = std::shared_ptr<session>;

  reactor& io;
  const options opts;
  handler_fn handler;
  tls_context tls;
  asio::ip::tcp::acceptor acceptor;
  std::uint16_t port = 0;
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::size_t> open{0};
  std::unordered_set<session_ptr> sessions;
  std::vector<char> large_buffer;  // of whoever reads just now

  result<void> bind();
  void accept();
  void took(asio::ip::tcp::socket socket);
  void watch();
  void drop_stuck();
  void shut();
};

/// One connection: reads a request, asks the handler, writes its answer, reads the next. While the
/// handler has a request, reading goes on so that the peer's end is noticed.
class http_server::impl::session : public std::enable_shared_from_this<session> {
public:
  session(std::shared_ptr<impl> owner, asio::ip::tcp::socket socket)
    : owner_{std::move(owner)}, stream_{byte_stream::socket_type{std::move(socket)}},
      reader_{http_reader::kind::request, owner_->opts.max_body_bytes} {}

  void start() {
    if (!owner_->tls) {
      read();
      return;
    }
    stream_.use_tls(*owner_->tls);
    stream_.handshake(asio::ssl::stream_base::server,
                      [self = shared_from_this()](const error_code& ec) {
                        if (ec)
                          self->close();
                        else
                          self->read();
                      });
  }

  void close() {
    if (std::exchange(closed_, true))
      return;
    stream_.close();
    --owner_->open;
    owner_->sessions.erase(shared_from_this());
  }

  void respond(server_response response) {
    if (closed_ || writing_)
      return;
    if (response.drop) {
      end_badly(response.reset);
      return;
    }
    writing_ = true;
    response_ = std::move(response);
    auto without_end = response_.source && version_ < 11;
    auto cut = !response_.source && response_.cut_after < response_.body.size();
    close_after_ = close_after_ || cut || without_end;
    head_ = head_of(response_, {version_, !close_after_});
    auto shown = has_body(response_.status) && !head_only_;
    if (response_.source && shown)
      ask_piece();
    else
      write({asio::buffer(head_), asio::buffer(response_.body.data(), shown ? body_bytes() : 0)});
  }

  /// The next piece of the body that is being sent.
  void take_piece(body_piece piece) {
    if (closed_)
      return;
    piece_ = std::move(piece);
    auto bytes = piece_.bytes.size();
    if (bytes == 0 && head_.empty() && piece_.then != body_piece::next::end) {
      // Not at once: a source that gives nothing but empty pieces would never return.
      io().post([self = shared_from_this()] { self->sent_piece(); });
      return;
    }
    auto chunked = version_ >= 11;
    chunk_head_ = chunked ? chunk_head(bytes) : std::string{};
    auto tail = chunk_tail(bytes, piece_.then == body_piece::next::end);
    unsent_ = true;
    stream_.write({asio::buffer(head_), asio::buffer(chunk_head_), asio::buffer(piece_.bytes),
                   asio::buffer(tail.data(), chunked ? tail.size() : 0)},
                  [self = shared_from_this()](const error_code& ec, std::size_t) {
                    self->unsent_ = false;
                    self->head_.clear();
                    if (ec)
                      self->close();
                    else
                      self->sent_piece();
                  });
  }

  /// True when the client has taken nothing of what is being written since this was asked last.
  [[nodiscard]] bool is_stuck() {
    auto before = std::exchange(taken_, std::nullopt);
    if (unsent_)
      taken_ = acknowledged_bytes(stream_.socket().native_handle());
    return taken_ && taken_ == before;
  }

  void drop() { end_badly(true); }

  [[nodiscard]] reactor& io() const { return owner_->io; }

private:
  static constexpr std::size_t max_read_ahead = 64u << 10;
  static constexpr std::size_t large_read = 128u << 10;

  void read() {
    if (closed_ || reading_ || reader_.waiting() > max_read_ahead)
      return;
    reading_ = true;
    stream_.read_some(asio::buffer(buffer_),
                      [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                        self->reading_ = false;
                        self->on_read(ec, {self->buffer_.data(), bytes});
                      });
  }

  void on_read(const error_code& ec, std::string_view bytes) {
    if (closed_)
      return;
    if (auto ok = reader_.feed(bytes); !ok) {
      refuse(ok.error());
      return;
    }
    if (bytes.size() == buffer_.size() && !take_ready())
      return;
    if (ec) {
      close();
      return;
    }
    take();
    read();
  }

  /// The buffer was full: more of a large body is there, most likely, and is fetched in portions
  /// larger than what each connection could have a buffer for. False: it was refused.
  bool take_ready() {
    if (reader_.done())
      return true;
    auto& buffer = owner_->large_buffer;
    buffer.resize(large_read);
    auto bytes = stream_.read_ready(asio::buffer(buffer));
    auto ok = reader_.feed({buffer.data(), bytes});
    if (!ok)
      refuse(ok.error());
    return ok.has_value();
  }

  /// Hands on the request, once it is whole and the last one has been answered.
  void take() {
    if (busy_ || closed_)
      return;
    if (!reader_.done()) {
      invite_body();
      return;
    }
    busy_ = true;
    invited_ = false;
    auto& m = reader_.message();
    head_only_ = m.method == "HEAD";
    version_ = m.version;
    close_after_ = !reader_.keep_alive();
    ask({std::move(m.method), std::move(m.target), std::move(m.headers), std::move(m.body)});
  }

  /// curl waits for this before it sends a large body.
  void invite_body() {
    static const std::string invitation = "HTTP/1.1 100 Continue\r\n\r\n";
    if (invited_ || !reader_.header_done() || reader_.message().header("expect") != "100-continue")
      return;
    invited_ = true;
    stream_.write({asio::buffer(invitation)}, [self = shared_from_this()](auto&&...) {});
  }

  void ask(server_request request);
  void ask_piece();

  [[nodiscard]] std::size_t body_bytes() const {
    return std::min(response_.body.size(), response_.cut_after);
  }

  void write(const std::vector<asio::const_buffer>& pieces) {
    unsent_ = true;
    stream_.write(pieces, [self = shared_from_this()](const error_code& ec, std::size_t) {
      self->unsent_ = false;
      self->written(ec);
    });
  }

  void sent_piece() {
    switch (piece_.then) {
    case body_piece::next::more:
      ask_piece();
      return;
    case body_piece::next::end:
      response_.source = nullptr;
      written({});
      return;
    case body_piece::next::cut:
    case body_piece::next::reset:
      end_badly(piece_.then == body_piece::next::reset);
    }
  }

  void end_badly(bool reset) {
    error_code ignored;
    if (reset && !closed_)
      stream_.socket().set_option(asio::socket_base::linger{true, 0}, ignored);
    close();
  }

  void written(const error_code& ec) {
    writing_ = false;
    if (ec || close_after_) {
      close();
      return;
    }
    busy_ = false;
    reader_.next();
    on_read({}, {});
  }

  void refuse(const error& why) {
    close_after_ = true;
    respond(plain_text(why.code == errc::over_budget ? 413 : 400, why.detail + "\n"));
  }

  std::shared_ptr<impl> owner_;
  byte_stream stream_;
  http_reader reader_;
  server_response response_;
  body_piece piece_;  ///< being written
  std::string head_;  ///< of the answer, until it is written with the first piece
  std::string chunk_head_;
  unsigned version_ = 11;  ///< of the request
  bool reading_ = false;
  bool writing_ = false;
  bool unsent_ = false;                 ///< some bytes of the answer are not with the kernel yet
  std::optional<std::uint64_t> taken_;  ///< by the client, when is_stuck() was asked last
  bool busy_ = false;                   ///< the handler has a request that is not answered yet
  bool close_after_ = false;            ///< the answer being written is the last
  bool head_only_ = false;
  bool invited_ = false;
  bool closed_ = false;
  std::array<char, 8192> buffer_;
};

/// The one answer to one question: to a request, or for the next piece of a body. Dropped
/// unanswered, it answers what `if_lost` makes: no client waits for ever.
template <class Answer>
class http_server::impl::slot {
public:
  using take_fn = void (session::*)(Answer);
  using lost_fn = Answer (*)();

  slot(const session_ptr& s, take_fn take, lost_fn if_lost)
    : io_{s->io()}, session_{s}, take_{take}, if_lost_{if_lost} {}
  slot(const slot&) = delete;
  slot& operator=(const slot&) = delete;
  ~slot() {
    if (!answered_)
      answer(if_lost_());
  }

  void answer(Answer answer) {
    if (answered_.exchange(true))
      return;
    auto target = session_.lock();
    if (!target)
      return;
    if (io_.on_thread())
      (*target.*take_)(std::move(answer));
    else
      io_.post([target, take = take_, a = std::make_shared<Answer>(std::move(answer))] {
        (*target.*take)(std::move(*a));
      });
  }

private:
  reactor& io_;
  std::weak_ptr<session> session_;
  take_fn take_;
  lost_fn if_lost_;
  std::atomic<bool> answered_{false};
};

void http_server::impl::session::ask(server_request request) {
  auto reply = std::make_shared<slot<server_response>>(shared_from_this(), &session::respond, [] {
    return plain_text(500, "the handler gave no answer\n");
  });
  try {
    owner_->handler(std::move(request),
                    [reply](server_response response) { reply->answer(std::move(response)); });
  } catch (const std::exception& e) {
    reply->answer(plain_text(500, std::string{e.what()} + "\n"));
  }
}

void http_server::impl::session::ask_piece() {
  if (closed_)
    return;
  auto piece = std::make_shared<slot<body_piece>>(shared_from_this(), &session::take_piece, [] {
    return body_piece{{}, body_piece::next::cut};
  });
  try {
    response_.source([piece](body_piece p) { piece->answer(std::move(p)); });
  } catch (const std::exception&) {
    piece->answer({{}, body_piece::next::cut});
  }
}

result<void> http_server::impl::bind() {
  if (!opts.certificate_file.empty()) {
    auto made = server_tls(opts.certificate_file, opts.key_file);
    if (!made)
      return fail(made.error());
    tls = *made;
  }
  error_code ec;
  auto address = asio::ip::make_address(opts.address, ec);
  asio::ip::tcp::endpoint where{address, opts.port};
  auto step = [&](auto action) {
    if (!ec)
      action();
  };
  step([&] { acceptor.open(where.protocol(), ec); });
  step([&] { acceptor.set_option(asio::socket_base::reuse_address{true}, ec); });
  step([&] { acceptor.bind(where, ec); });
  step([&] { acceptor.listen(asio::socket_base::max_listen_connections, ec); });
  step([&] { port = acceptor.local_endpoint(ec).port(); });
  if (ec)
    return fail(errc::unavailable, "cannot listen on " + opts.address + ":"
                                     + std::to_string(opts.port) + ": " + ec.message());
  return {};
}

void http_server::impl::accept() {
  acceptor.async_accept(
    [self = shared_from_this()](const error_code& ec, asio::ip::tcp::socket socket) {
      if (!self->acceptor.is_open())
        return;
      if (!ec) {
        self->took(std::move(socket));
        self->accept();
        return;
      }
      // Out of descriptors, most likely: trying again at once would spin.
      self->io.in(millis{50}, [weak = self->weak_from_this()] {
        if (auto again = weak.lock(); again && again->acceptor.is_open())
          again->accept();
      });
    });
}

void http_server::impl::took(asio::ip::tcp::socket socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay{true}, ignored);
  ++accepted;
  ++open;
  auto made = std::make_shared<session>(shared_from_this(), std::move(socket));
  sessions.insert(made);
  made->start();
}

void http_server::impl::watch() {
  if (opts.stuck_after > millis{0})
    io.in(opts.stuck_after, [weak = weak_from_this()] {
      if (auto self = weak.lock(); self && self->acceptor.is_open())
        self->drop_stuck();
    });
}

void http_server::impl::drop_stuck() {
  std::vector<session_ptr> stuck;
  for (auto& s : sessions)
    if (s->is_stuck())
      stuck.push_back(s);
  for (auto& s : stuck)
    s->drop();
  watch();
}

void http_server::impl::shut() {
  error_code ignored;
  acceptor.close(ignored);
  while (!sessions.empty())
    session_ptr {
      *sessions.begin()
    } -> close();
  handler = nullptr;
}

http_server::http_server(std::shared_ptr<impl> i) : impl_{std::move(i)} {}

result<std::unique_ptr<http_server>> http_server::listen(reactor& io, options opts,
                                                         handler_fn handler) {
  auto made = std::make_shared<impl>(io, std::move(opts), std::move(handler));
  if (auto bound = made->bind(); !bound)
    return fail(bound.error());
  io.post([made] {
    made->accept();
    made->watch();
  });
  return std::unique_ptr<http_server>{new http_server{std::move(made)}};
}

http_server::~http_server() {
  run_on_reactor(impl_->io, [state = impl_] { state->shut(); });
}

std::uint16_t http_server::port() const noexcept {
  return impl_->port;
}

std::uint64_t http_server::accepted() const noexcept {
  return impl_->accepted;
}

std::size_t http_server::open() const noexcept {
  return impl_->open;
}

}  // namespace troupe

#include "runtime/net/byte_stream.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_reader.hpp"
#include "runtime/net/on_reactor.hpp"
#include "runtime/net/tls.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <unordered_set>
#include <utility>

namespace troupe {
namespace {

std::string_view reason_of(unsigned status) {
  switch (status) {
  case 200:
    return "OK";
  case 201:
    return "Created";
  case 202:
    return "Accepted";
  case 204:
    return "No Content";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 413:
    return "Content Too Large";
  case 429:
    return "Too Many Requests";
  case 500:
    return "Internal Server Error";
  case 503:
    return "Service Unavailable";
  default:
    return "Status";
  }
}

bool has_body(unsigned status) {
  return status >= 200 && status != 204 && status != 304;
}

server_response plain_text(unsigned status, std::string text) {
  server_response out;
  out.status = status;
  out.headers = {{"content-type", "text/plain"}};
  out.body = std::move(text);
  return out;
}

std::string header_of(const server_response& r, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(r.status) + " ";
  out.append(reason_of(r.status)).append("\r\n");
  for (auto& [name, value] : r.headers)
    out.append(name).append(": ").append(value).append("\r\n");
  if (has_body(r.status))
    out.append("content-length: ").append(std::to_string(r.body.size())).append("\r\n");
  if (!keep_alive)
    out += "connection: close\r\n";
  out += "\r\n";
  return out;
}

}  // namespace

struct http_server::impl : std::enable_shared_from_this<http_server::impl> {
  impl(reactor& r, options o, handler_fn h)
    : io{r}, opts{std::move(o)}, handler{std::move(h)}, acceptor{r.context()} {}

  class session;
  class reply_slot;
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

  result<void> bind();
  void accept();
  void took(asio::ip::tcp::socket socket);
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
      close();
      return;
    }
    writing_ = true;
    response_ = std::move(response);
    auto cut = response_.cut_after < response_.body.size();
    close_after_ = close_after_ || cut;
    header_ = header_of(response_, !close_after_);
    auto shown = has_body(response_.status) && !head_only_ ? response_.body.size() : 0;
    stream_.write(
      {asio::buffer(header_),
       asio::buffer(response_.body.data(), std::min(shown, response_.cut_after))},
      [self = shared_from_this()](const error_code& ec, std::size_t) { self->written(ec); });
  }

  [[nodiscard]] reactor& io() const { return owner_->io; }

private:
  static constexpr std::size_t max_read_ahead = 64u << 10;

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
    if (ec) {
      close();
      return;
    }
    take();
    read();
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
  std::string header_;
  bool reading_ = false;
  bool writing_ = false;
  bool busy_ = false;         ///< the handler has a request that is not answered yet
  bool close_after_ = false;  ///< the answer being written is the last
  bool head_only_ = false;
  bool invited_ = false;
  bool closed_ = false;
  std::array<char, 8192> buffer_;
};

/// The one answer to one request. Dropped unanswered, it answers 500: no client waits for ever.
class http_server::impl::reply_slot {
public:
  explicit reply_slot(const session_ptr& s) : io_{s->io()}, session_{s} {}
  reply_slot(const reply_slot&) = delete;
  reply_slot& operator=(const reply_slot&) = delete;
  ~reply_slot() { answer(plain_text(500, "the handler gave no answer\n")); }

  void answer(server_response response) {
    if (answered_.exchange(true))
      return;
    auto target = session_.lock();
    if (!target)
      return;
    if (io_.on_thread())
      target->respond(std::move(response));
    else
      io_.post([target, r = std::make_shared<server_response>(std::move(response))] {
        target->respond(std::move(*r));
      });
  }

private:
  reactor& io_;
  std::weak_ptr<session> session_;
  std::atomic<bool> answered_{false};
};

void http_server::impl::session::ask(server_request request) {
  auto slot = std::make_shared<reply_slot>(shared_from_this());
  try {
    owner_->handler(std::move(request),
                    [slot](server_response response) { slot->answer(std::move(response)); });
  } catch (const std::exception& e) {
    slot->answer(plain_text(500, std::string{e.what()} + "\n"));
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
  io.post([made] { made->accept(); });
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

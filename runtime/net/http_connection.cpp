#include "runtime/net/http_connection.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace troupe {
namespace {

std::string explain_connect(const error_code& ec) {
  if (ec == asio::error::connection_refused)
    return "connection refused; is a server listening there?";
  if (ec == boost::system::errc::no_such_file_or_directory)
    return "there is no such socket; is the server running?";
  if (ec == boost::system::errc::permission_denied)
    return "permission denied on the socket; check its owner and mode";
  if (ec == boost::system::errc::too_many_files_open)
    return "too many open files; raise the limit (ulimit -n) or lower the number of connections";
  return "cannot connect: " + ec.message();
}

std::string printable_start(std::string_view bytes) {
  std::string out;
  for (auto c : bytes.substr(0, 40))
    out += c >= 0x20 && c < 0x7F ? c : '.';
  return out;
}

bool is_end(const error_code& ec) {
  return ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
}

}  // namespace

std::string_view to_string(http_phase phase) noexcept {
  switch (phase) {
  case http_phase::queued:
    return "while waiting for a free connection";
  case http_phase::connecting:
    return "while connecting";
  case http_phase::handshaking:
    return "during the TLS handshake";
  case http_phase::sending:
    return "while sending the request";
  case http_phase::waiting:
    return "while waiting for the answer's first byte";
  case http_phase::receiving:
    return "while receiving the answer";
  }
  return "";
}

void http_connection::connect(std::vector<address_book::endpoint> addresses, tls_context tls,
                              std::string host, bool verify, connected_fn then) {
  addresses_ = std::move(addresses);
  tls_ = std::move(tls);
  host_ = std::move(host);
  verify_ = verify;
  connected_ = std::move(then);
  connect_next(asio::error::host_not_found);
}

void http_connection::connect_next(error_code last) {
  if (next_address_ == addresses_.size()) {
    connected(fail(errc::unavailable, explain_connect(last)));
    return;
  }
  stream_.close();  // an address tried in vain leaves its socket open
  auto& address = addresses_[next_address_++];
  stream_.socket().async_connect(address, [self = shared_from_this()](const error_code& ec) {
    if (!self->connected_)
      return;
    if (ec) {
      self->connect_next(ec);
      return;
    }
    error_code not_tcp;
    self->stream_.socket().set_option(asio::ip::tcp::no_delay{true}, not_tcp);
    if (self->tls_)
      self->shake_hands();
    else
      self->connected({});
  });
}

void http_connection::shake_hands() {
  phase_ = http_phase::handshaking;
  stream_.use_tls(*tls_);
  if (!expect_peer(stream_.tls(), host_, verify_)) {
    connected(fail(errc::unavailable, "TLS: '" + host_ + "' is not a usable host name"));
    return;
  }
  stream_.handshake(
    asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& ec) {
      if (!self->connected_)
        return;
      if (ec)
        self->connected(
          fail(errc::unavailable, explain_handshake(ec, self->stream_.tls(), self->host_)));
      else
        self->connected({});
    });
}

void http_connection::connected(result<void> how) {
  std::exchange(connected_, nullptr)(std::move(how));
}

void http_connection::exchange(const std::shared_ptr<const outgoing>& out, piece_fn piece,
                               ended_fn then) {
  ended_ = std::move(then);
  piece_ = std::move(piece);
  phase_ = http_phase::sending;
  written_ = false;
  reader_.next(out->request.method == "HEAD");
  std::vector<asio::const_buffer> pieces;
  pieces.reserve(out->request.body.size() + 1);
  pieces.push_back(asio::buffer(out->header));
  for (auto part : out->request.body)
    if (!part.empty())
      pieces.push_back(asio::buffer(part.data(), part.size()));
  stream_.write(std::move(pieces),
                [self = shared_from_this(), out](const error_code& ec, std::size_t) {
                  // A failed write is no verdict: the answer, or the peer's end, is still to read.
                  if (!ec && !self->written_ && self->phase_ == http_phase::sending)
                    self->phase_ = http_phase::waiting;
                  self->written_ = !ec;
                });
  read();
}

void http_connection::read() {
  stream_.read_some(asio::buffer(buffer_),
                    [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                      if (self->ended_)
                        self->on_read(ec, bytes);
                    });
}

void http_connection::on_read(error_code ec, std::size_t bytes) {
  if (bytes > 0) {
    phase_ = http_phase::receiving;
    std::string_view got{buffer_.data(), bytes};
    auto was_started = reader_.started();
    if (auto ok = reader_.feed(got); !ok) {
      auto e = ok.error();
      if (e.code == errc::corrupt && !was_started)
        e.detail += "; the answer begins with '" + printable_start(got) + "'";
      finish(fail(std::move(e)), false, false);
      return;
    }
    pass_on_body();
    if (!ended_)
      return;  // closed by the one who got the piece
  }
  if (reader_.done())
    on_end({});
  else if (ec)
    on_end(ec);
  else
    read();
}

void http_connection::pass_on_body() {
  auto& m = reader_.message();
  if (!piece_ || !reader_.header_done() || m.status / 100 != 2 || m.body.empty())
    return;
  auto body = std::exchange(m.body, {});
  auto piece = std::move(piece_);  // it may close us, and must outlive that
  piece(body);
  if (ended_)
    piece_ = std::move(piece);
}

void http_connection::on_end(const error_code& ec) {
  if (ec) {
    auto untouched = !reader_.started();
    if (!is_end(ec)) {
      finish(fail(errc::unavailable, "the connection broke: " + ec.message()), false, untouched);
      return;
    }
    if (auto whole = reader_.feed_end(); !whole) {
      finish(fail(whole.error()), false, untouched);
      return;
    }
  }
  auto reusable = !ec && written_ && reader_.keep_alive() && reader_.waiting() == 0;
  auto& m = reader_.message();
  finish(http_response{m.status, std::move(m.headers), std::move(m.body)}, reusable, false);
}

void http_connection::finish(result<http_response> response, bool reusable, bool untouched) {
  piece_ = nullptr;
  std::exchange(ended_, nullptr)({std::move(response), reusable, untouched});
}

void http_connection::close() noexcept {
  connected_ = nullptr;
  ended_ = nullptr;
  piece_ = nullptr;
  stream_.close();
}

http_phase http_connection::phase() const noexcept {
  return phase_;
}

}  // namespace troupe

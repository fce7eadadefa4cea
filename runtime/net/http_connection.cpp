#include "runtime/net/http_connection.hpp"

#include "runtime/net/tcp_progress.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace troupe {
namespace {

std::string printable_start(std::string_view bytes) {
  std::string out;
  for (auto c : bytes.substr(0, 40))
    out += c >= 0x20 && c < 0x7F ? c : '.';
  return out;
}

bool is_end(const error_code& ec) {
  return ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
}

/// A TLS record: an alert, or a handshake. RFC 8446, section 5.1.
bool is_tls(std::string_view bytes) {
  return bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03;
}

error not_http(error why, std::string_view got) {
  if (is_tls(got))
    return {errc::invalid_argument, "the server speaks TLS on this port; write https://"};
  why.detail += "; the answer begins with '" + printable_start(got) + "'";
  return why;
}

}  // namespace

void http_connection::exchange(const std::shared_ptr<const outgoing>& out, piece_fn piece,
                               ended_fn then) {
  ended_ = std::move(then);
  piece_ = std::move(piece);
  phase_ = http_phase::sending;
  written_ = false;
  refused_whole_ = false;
  reader_.next(out->request.method == "HEAD");
  note_earlier(*out);
  write(out);
  read();
}

void http_connection::note_earlier(const outgoing& out) {
  // To ask the system costs a microsecond: once, unless TLS makes other bytes of ours.
  if (!earlier_bytes_ || stream_->tls() != nullptr)
    earlier_bytes_ = acknowledged_bytes(stream_->socket().native_handle());
  else
    *earlier_bytes_ += own_bytes_;
  own_bytes_ = out.header.size();
  for (auto part : out.request.body)
    own_bytes_ += part.size();
}

void http_connection::write(const std::shared_ptr<const outgoing>& out) {
  std::vector<asio::const_buffer> pieces;
  pieces.reserve(out->request.body.size() + 1);
  pieces.push_back(asio::buffer(out->header));
  for (auto part : out->request.body)
    if (!part.empty())
      pieces.push_back(asio::buffer(part.data(), part.size()));
  stream_->write(pieces, [self = shared_from_this(), out](const error_code& ec, std::size_t bytes) {
    // A failed write is no verdict: the answer, or the peer's end, is still to read.
    if (!ec && !self->written_ && self->phase_ == http_phase::sending)
      self->phase_ = http_phase::waiting;
    self->written_ = !ec;
    self->refused_whole_ = ec && bytes == 0;
  });
}

void http_connection::read() {
  stream_->read_some(asio::buffer(buffer_),
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
      finish({fail(e.code == errc::corrupt && !was_started ? not_http(std::move(e), got) : e)});
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
    auto whole = is_end(ec)
                   ? reader_.feed_end()
                   : result<void>{fail(errc::unavailable, "the connection broke: " + ec.message())};
    if (!whole) {
      if (reader_.started())
        finish({fail(whole.error())});
      else
        unanswered(whole.error());
      return;
    }
  }
  auto reusable = !ec && written_ && reader_.keep_alive() && reader_.waiting() == 0;
  auto& m = reader_.message();
  finish({http_response{m.status, std::move(m.headers), std::move(m.body)}, reusable});
}

void http_connection::unanswered(error why) {
  finish({fail(std::move(why)), false, true, !was_seen()});
}

/// What the peer's system has not acknowledged, nobody there has read: it answers the bytes of a
/// closed connection with a reset. Where there is no such count, only what was never taken from us
/// is known to be unseen.
bool http_connection::was_seen() const {
  auto now = acknowledged_bytes(stream_->socket().native_handle());
  if (!earlier_bytes_ || !now)
    return !refused_whole_;
  return *now > *earlier_bytes_;
}

void http_connection::finish(ended how) {
  piece_ = nullptr;
  std::exchange(ended_, nullptr)(std::move(how));
}

void http_connection::close() noexcept {
  ended_ = nullptr;
  piece_ = nullptr;
  stream_->close();
}

}  // namespace troupe

#pragma once
// A connected stream of bytes: TCP or unix socket, plain or under TLS. Asio's own types: include
// this from .cpp files of runtime/net only.

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace troupe {

namespace asio = boost::asio;
using boost::system::error_code;

/// Resource; not moved once it is in use. Handlers get (error_code) or (error_code, bytes).
class byte_stream {
public:
  using socket_type = asio::generic::stream_protocol::socket;

  explicit byte_stream(asio::io_context& context) : socket_{context} {}
  explicit byte_stream(socket_type socket) : socket_{std::move(socket)} {}
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  [[nodiscard]] socket_type& socket() noexcept { return socket_; }

  void use_tls(asio::ssl::context& context) { tls_.emplace(socket_, context); }
  [[nodiscard]] SSL* tls() noexcept { return tls_ ? tls_->native_handle() : nullptr; }

  template <class Handler>
  void handshake(asio::ssl::stream_base::handshake_type type, Handler handler) {
    tls_->async_handshake(type, std::move(handler));
  }

  template <class Handler>
  void read_some(asio::mutable_buffer into, Handler handler) {
    if (tls_)
      tls_->async_read_some(into, std::move(handler));
    else
      socket_.async_read_some(into, std::move(handler));
  }

  /// Takes what is there now, without waiting: the number of bytes, 0 for none. An end or a failure
  /// is left for the next read, and TLS hands out nothing this way.
  [[nodiscard]] std::size_t read_ready(asio::mutable_buffer into) {
    if (tls_)
      return 0;
    auto n = ::recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  /// Writes all pieces, which must stay valid until the handler is called. A plain socket gets
  /// them in one gathered write; TLS makes a record of each, so small ones are joined first.
  template <class Handler>
  void write(const std::vector<asio::const_buffer>& pieces, Handler handler) {
    constexpr std::size_t one_record = 16u << 10;
    if (!tls_) {
      asio::async_write(socket_, pieces, std::move(handler));
    } else if (asio::buffer_size(pieces) <= one_record) {
      joined_.resize(asio::buffer_size(pieces));
      asio::buffer_copy(asio::buffer(joined_), pieces);
      asio::async_write(*tls_, asio::buffer(joined_), std::move(handler));
    } else {
      asio::async_write(*tls_, pieces, std::move(handler));
    }
  }

  /// True when the peer has neither closed an idle stream nor sent anything on it.
  [[nodiscard]] bool is_quiet() {
    char byte = 0;
    auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  /// Pending handlers are called with operation_aborted, later.
  void close() noexcept {
    error_code ignored;
    socket_.close(ignored);
  }

private:
  socket_type socket_;
  std::optional<asio::ssl::stream<socket_type&>> tls_;
  std::string joined_;
};

}  // namespace troupe

#pragma once
// One client connection: connects, then carries one exchange after the other. The pool above it
// owns time, retries and the decision to close. Used on the reactor's thread only.

#include "runtime/net/address_book.hpp"
#include "runtime/net/byte_stream.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_reader.hpp"
#include "runtime/net/tls.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// A request ready to be written: its header, and the body it came with.
struct outgoing {
  std::string header;
  http_request request;
};

/// How far an exchange has come, for messages about time.
enum class http_phase { queued, connecting, handshaking, sending, waiting, receiving };

/// "while connecting" and the like.
[[nodiscard]] std::string_view to_string(http_phase phase) noexcept;

class http_connection : public std::enable_shared_from_this<http_connection> {
public:
  struct ended {
    result<http_response> response;
    bool reusable = false;   ///< may carry another exchange
    bool untouched = false;  ///< the peer closed before it sent one byte
  };
  using connected_fn = std::function<void(result<void>)>;
  using ended_fn = std::function<void(ended)>;
  using piece_fn = std::function<void(std::string_view)>;

  http_connection(asio::io_context& context, std::size_t max_response_bytes)
    : stream_{context}, reader_{http_reader::kind::response, max_response_bytes} {}

  /// Tries the addresses in order; under TLS when `tls` is given, as `host`. Calls `then` once,
  /// later, unless closed before.
  void connect(std::vector<address_book::endpoint> addresses, tls_context tls, std::string host,
               bool verify, connected_fn then);

  /// Writes the request and reads its answer, both at once: a server may answer before it has read
  /// all. Calls `then` once, later, unless closed before. With `piece`, a 2xx answer's body goes
  /// there as it comes, and is not kept.
  void exchange(const std::shared_ptr<const outgoing>& out, piece_fn piece, ended_fn then);

  /// The answer as far as it has come.
  [[nodiscard]] const http_message& answer() noexcept { return reader_.message(); }

  /// Ends whatever goes on; nothing is called any more. Idempotent.
  void close() noexcept;

  [[nodiscard]] http_phase phase() const noexcept;
  [[nodiscard]] bool is_quiet() { return stream_.is_quiet(); }

private:
  void connect_next(error_code last);
  void shake_hands();
  void connected(result<void> how);
  void read();
  void on_read(error_code ec, std::size_t bytes);
  void on_end(const error_code& ec);
  void pass_on_body();
  void finish(result<http_response> response, bool reusable, bool untouched);

  byte_stream stream_;
  http_reader reader_;
  std::vector<address_book::endpoint> addresses_;
  std::size_t next_address_ = 0;
  tls_context tls_;
  std::string host_;
  bool verify_ = true;
  bool written_ = false;
  http_phase phase_ = http_phase::connecting;
  connected_fn connected_;
  ended_fn ended_;
  piece_fn piece_;
  std::array<char, 8192> buffer_;
};

}  // namespace troupe

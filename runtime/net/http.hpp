#pragma once
// HTTP/1.1 as the rest of troupe sees it: one client with a keep-alive pool, one small server.
// Beast is dear to compile and stays inside http_reader.cpp.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"
#include "runtime/net/proxy_settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

class name_resolver;
class reactor;

/// A parsed absolute URL: http, https, or unix (http over a unix socket, "unix:///path").
struct url {
  std::string scheme;
  std::string host;  ///< without brackets for IPv6; the socket's path for unix
  std::uint16_t port = 0;
  std::string path;  ///< begins with '/', without a trailing '/', or is empty

  bool operator==(const url&) const = default;
};

/// Errors  invalid_argument: what is wrong and the accepted form.
[[nodiscard]] result<url> parse_url(std::string_view text);

using header_fields = std::vector<std::pair<std::string, std::string>>;

/// A body written as consecutive pieces, none of which is copied.
struct http_request {
  std::string method = "POST";
  url to{};              ///< scheme, host, port of the peer
  std::string target{};  ///< path and query as sent
  header_fields headers{};
  std::vector<std::shared_ptr<const void>> owners{};  ///< keeps shared pieces alive
  std::vector<std::string_view> body{};               ///< views into `owners`
};

struct http_response {
  unsigned status = 0;
  header_fields headers{};  ///< names in lower case
  std::string body{};
};

/// Why no response came: timeout, unavailable, cancelled, over_budget (answer too long), corrupt
/// (not HTTP), invalid_argument (cannot be sent). `sent`: the peer may have seen the request.
struct http_failure {
  error what;
  bool sent = false;
};

/// How an answer is read while it comes.
struct http_stream {
  /// Gets a 2xx answer's body piece by piece, on the reactor; the response's own body is empty
  /// then. False: no more is needed, the call ends well now. What is left is read over, so that the
  /// connection may be used again, but waited for no longer than a second.
  std::function<bool(std::string_view)> piece{};
  millis silence{0};  ///< longest wait from one piece to the next, else timeout; 0: no limit
};

struct http_client_limits {
  std::size_t max_connections = 1024;  ///< open at once, all peers
  std::size_t max_idle_per_peer = 256;
  millis idle_timeout{30'000};     ///< an idle connection is closed after this
  millis connect_timeout{10'000};  ///< lookup, connection, proxy and TLS together
  std::size_t max_response_bytes = 64u << 20;
  std::string ca_file{};    ///< PEM; empty for the system's roots
  bool verify_peer = true;  ///< host name and chain; tests alone turn it off
  proxy_settings proxies{};
};

struct http_client_stats {
  std::uint64_t requests = 0;
  std::uint64_t connections_opened = 0;
  std::uint64_t stale_retries = 0;  ///< idle connections found closed, at the cost of no failure
  std::size_t open = 0;
  std::size_t idle = 0;
};

/// Keep-alive pool; calls wait in order. Thread-safe. `done` is called once, on the reactor.
/// A server may close an idle connection just when a request is on its way. Such a request is sent
/// once more, on a new connection, if no byte of it had reached the server's system, or its method
/// is idempotent (RFC 9110, section 9.2.2). A POST that may have been seen fails instead: what
/// follows is for those to decide who know what it costs.
class http_client {
public:
  using done_fn = std::function<void(tl::expected<http_response, http_failure>)>;
  using ticket = std::uint64_t;

  /// `names` looks host names up; null: as the system does.
  http_client(reactor& io, http_client_limits limits,
              std::shared_ptr<name_resolver> names = nullptr);
  ~http_client();  ///< closes all connections; open calls end as cancelled
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  ticket send(http_request request, time_point deadline, done_fn done);
  ticket send(http_request request, time_point deadline, http_stream how, done_fn done);

  /// Closes the call's socket; `done` gets `cancelled`. Nothing happens for a finished call.
  void cancel(ticket which);

  [[nodiscard]] http_client_stats stats() const;

private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

/// A request as a handler of http_server sees it.
struct server_request {
  std::string method{};
  std::string target{};
  header_fields headers{};  ///< names in lower case
  std::string body{};
};

/// One piece of a body that is made while it is sent, and what follows it.
struct body_piece {
  enum class next : std::uint8_t {
    more,  ///< another piece
    end,   ///< the body is whole
    cut,   ///< the connection is closed within the body
    reset  ///< the same, by a TCP reset
  };
  std::string bytes{};
  next then = next::more;
};

using give_piece_fn = std::function<void(body_piece)>;

/// Makes a body piece by piece. Called on the reactor's thread for one piece at a time, it calls
/// `give` once, at any time, from any thread; dropping `give` cuts the body. The next piece is
/// asked for when the last one is with the kernel, so a client that does not read costs one piece.
/// It is dropped with its connection.
using body_source = std::function<void(give_piece_fn give)>;

/// What a handler answers. `drop` closes the socket without an answer, by a TCP reset if `reset`;
/// `cut_after` closes it after so many body bytes: faults that tests and the mock server need.
struct server_response {
  unsigned status = 200;
  header_fields headers{};
  std::string body{};
  bool drop = false;
  std::size_t cut_after = static_cast<std::size_t>(-1);
  bool reset = false;
  body_source source{};  ///< instead of `body`; the header goes out with its first piece
};

/// A small HTTP/1.1 server on loopback (keep-alive, chunked requests accepted, no TLS unless a
/// certificate is given). The handler runs on the reactor's thread and answers once, at any time,
/// from any thread.
class http_server {
public:
  using respond_fn = std::function<void(server_response)>;
  using handler_fn = std::function<void(server_request, respond_fn)>;

  struct options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0: the system picks
    std::size_t max_body_bytes = 64u << 20;
    /// A client whose system takes nothing of an answer for this long is cut off, within twice the
    /// time; 0: it may keep the answer waiting for ever.
    millis stuck_after{60'000};
    std::string certificate_file{};  ///< PEM; with key_file: serve TLS
    std::string key_file{};
  };

  /// Errors  unavailable: the address cannot be bound.
  static result<std::unique_ptr<http_server>> listen(reactor& io, options opts, handler_fn handler);
  ~http_server();

  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Connections accepted so far, and open now.
  [[nodiscard]] std::uint64_t accepted() const noexcept;
  [[nodiscard]] std::size_t open() const noexcept;

private:
  struct impl;
  explicit http_server(std::shared_ptr<impl> i);
  std::shared_ptr<impl> impl_;
};

}  // namespace troupe

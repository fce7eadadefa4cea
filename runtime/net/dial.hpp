#pragma once
// From a URL to a stream that is ready for a request: lookup, connection, proxy, TLS. Used on the
// reactor's thread only; the time for all of it is the caller's to keep.

#include "runtime/net/address_book.hpp"
#include "runtime/net/byte_stream.hpp"
#include "runtime/net/happy_eyeballs.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_phase.hpp"
#include "runtime/net/http_reader.hpp"
#include "runtime/net/proxy_settings.hpp"
#include "runtime/net/tls.hpp"

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct dial_plan {
  url to;
  std::optional<proxy_server> via;  ///< plain HTTP goes to it, HTTPS through a tunnel in it
  tls_context tls;                  ///< null: plain
  bool verify = true;               ///< the peer's certificate
};

/// One connection on its way. RFC 8305 decides which addresses are tried and when; those that lose
/// are closed.
class dialing : public std::enable_shared_from_this<dialing> {
public:
  using outcome = result<std::unique_ptr<byte_stream>>;
  using done_fn = std::function<void(outcome)>;

  dialing(reactor& io, std::shared_ptr<address_book> names, dial_plan plan);

  /// Calls `then` once, later, unless closed before.
  void start(done_fn then);

  /// Ends it; nothing is called any more. Idempotent.
  void close() noexcept;

  /// What it was doing last: "while connecting to the proxy ...".
  [[nodiscard]] std::string where() const;

private:
  using socket = byte_stream::socket_type;
  using endpoint = asio::generic::stream_protocol::endpoint;
  using sockets = std::list<socket>;

  /// What is said to the proxy, and heard.
  struct talk {
    explicit talk(std::string r) : request{std::move(r)} { reader.next(true); }

    std::string request;
    http_reader reader{http_reader::kind::response, 0};
    std::array<char, 2048> buffer;
  };

  void look_up(const host_name& host, std::uint16_t port);
  void found(address_family family, std::vector<endpoint> where);
  void not_found(address_family family, error why);
  void step();
  void wait(time_point until);
  void attempt(const endpoint& to);
  void attempt_failed(sockets::iterator which, const error_code& ec);
  void attempt_won(sockets::iterator which);
  void ask_for_tunnel();
  void read_tunnel();
  void on_tunnel_bytes(const error_code& ec, std::size_t bytes);
  void shake_hands();
  void finish(outcome how);
  void lose();
  void drop_attempts() noexcept;
  [[nodiscard]] error worded(error why) const;

  reactor& io_;
  std::shared_ptr<address_book> names_;
  dial_plan plan_;
  done_fn done_;
  http_phase phase_ = http_phase::resolving;
  happy_eyeballs race_;
  std::array<std::vector<endpoint>, 2> addresses_;
  sockets attempts_;
  timer_id alarm_ = 0;
  std::optional<error> lookup_error_;
  std::optional<error_code> connect_error_;
  std::unique_ptr<byte_stream> stream_;
  std::unique_ptr<talk> talk_;
};

}  // namespace troupe

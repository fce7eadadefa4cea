#pragma once
// The only way out of a sandbox whose network is an allow list: an HTTP proxy on a socket inside
// it.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"
#include "runtime/net/egress_policy.hpp"
#include "runtime/net/egress_record.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe {

class reactor;
struct egress_dialer;

struct egress_limits {
  std::size_t connections = 64;  ///< at once; more wait until one ends
  std::size_t head_bytes = 16u << 10;
  millis head_time{10'000};     ///< until the request's head is complete
  millis connect_time{10'000};  ///< lookup and all tries to connect, together
  millis idle_time{60'000};     ///< without a byte either way
  millis total_time{600'000};
  millis linger_time{1'000};  ///< for a refused client to read why
};

/// Takes CONNECT and absolute-form http requests, one for each connection, checks them against the
/// policy, looks names up itself and checks every address found: what is not of the public internet
/// is refused unless the policy lists that very address. It then connects to the address that it
/// has checked. Connections are made from the runtime's own network.
/// Resource. A reactor's object; made and destroyed on any thread.
class egress_proxy {
public:
  /// Called once for each accepted connection, when it has ended or was refused; on the reactor.
  using record_fn = std::function<void(const egress_record&)>;

  struct options {
    egress_policy policy{};
    egress_limits limits{};
    record_fn on_connection{};                      ///< may be empty
    std::shared_ptr<const egress_dialer> dialer{};  ///< empty: the system's
  };

  /// Takes over `listener`, a listening TCP socket's descriptor, also when it fails.
  /// Errors  invalid_argument: it is no such socket.
  static result<std::unique_ptr<egress_proxy>> serve(reactor& io, int listener, options opts);

  /// Closes the socket and all connections, which are recorded before it returns.
  ~egress_proxy();
  egress_proxy(const egress_proxy&) = delete;
  egress_proxy& operator=(const egress_proxy&) = delete;

  /// Connections that are open now.
  [[nodiscard]] std::size_t open() const noexcept;

private:
  struct impl;
  explicit egress_proxy(std::shared_ptr<impl> i);
  std::shared_ptr<impl> impl_;
};

}  // namespace troupe

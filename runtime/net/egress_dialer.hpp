#pragma once
// How the egress proxy looks names up and connects; tests put their own in its place. Asio's own
// types: for runtime/net and its tests only.

#include "runtime/core/error.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class reactor;

struct egress_dialer {
  using addresses = std::vector<boost::asio::ip::address>;
  using resolved_fn = std::function<void(result<addresses>)>;
  using connected_fn = std::function<void(const boost::system::error_code&)>;

  /// Calls `then` once, on the reactor, now or later; never again when the handle that it returned
  /// is gone.
  std::function<std::shared_ptr<void>(const std::string& name, resolved_fn then)> resolve;

  /// Calls `then` once, later, on the reactor. Closing the socket ends the attempt.
  std::function<void(boost::asio::ip::tcp::socket& socket, const boost::asio::ip::tcp::endpoint& to,
                     connected_fn then)>
    connect;
};

/// The machine's own resolver and network.
[[nodiscard]] egress_dialer system_dialer(reactor& io);

}  // namespace troupe

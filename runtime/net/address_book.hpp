#pragma once
// Host names looked up once for all connections that want them at the same time.

#include "runtime/core/error.hpp"
#include "runtime/core/time.hpp"
#include "runtime/net/http.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Addresses of peers, kept for a while. Asio looks names up on one thread of its own: without
/// this, a thousand new connections to one host would wait for a thousand lookups in a row.
/// Used on the reactor's thread only.
class address_book : public std::enable_shared_from_this<address_book> {
public:
  using endpoint = boost::asio::generic::stream_protocol::endpoint;
  using answer = result<std::vector<endpoint>>;
  using answer_fn = std::function<void(const answer&)>;

  explicit address_book(boost::asio::io_context& context) : resolver_{context} {}

  /// Calls `then` with at least one address; at once when they are known or need no lookup.
  /// Errors  unavailable: there is no such host, or the lookup failed.
  void find(const url& peer, time_point now, answer_fn then);

  /// Gives up all lookups; their `then` is not called.
  void close();

private:
  struct entry {
    std::vector<endpoint> known;
    time_point good_until{};
    std::vector<answer_fn> waiting;
  };

  void look_up(const std::string& key, const url& peer);
  void found(const std::string& key, const answer& addresses);

  boost::asio::ip::tcp::resolver resolver_;
  std::unordered_map<std::string, entry> entries_;
  bool closed_ = false;
};

}  // namespace troupe

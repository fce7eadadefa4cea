#include "runtime/net/address_book.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <utility>

namespace troupe {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
constexpr std::chrono::seconds keep{30};

}  // namespace

void address_book::find(const url& peer, time_point now, answer_fn then) {
  if (peer.scheme == "unix") {
    then(std::vector<endpoint>{asio::local::stream_protocol::endpoint{peer.host}});
    return;
  }
  error_code ec;
  if (auto address = asio::ip::make_address(peer.host, ec); !ec) {
    then(std::vector<endpoint>{asio::ip::tcp::endpoint{address, peer.port}});
    return;
  }
  auto key = peer.host + ":" + std::to_string(peer.port);
  auto& e = entries_[key];
  if (e.good_until > now) {
    then(e.known);
    return;
  }
  e.waiting.push_back(std::move(then));
  if (e.waiting.size() == 1)
    look_up(key, peer);
}

void address_book::look_up(const std::string& key, const url& peer) {
  resolver_.async_resolve(
    peer.host, std::to_string(peer.port), asio::ip::resolver_base::numeric_service,
    [self = shared_from_this(), key, host = peer.host](const error_code& ec, const auto& results) {
      if (self->closed_)
        return;
      std::vector<endpoint> addresses;
      for (auto& r : results)
        addresses.emplace_back(r.endpoint());
      if (ec)
        self->found(key, fail(errc::unavailable, "cannot resolve the host name '" + host
                                                   + "': " + ec.message()
                                                   + "; check the name and this machine's DNS"));
      else
        self->found(key, std::move(addresses));
    });
}

void address_book::found(const std::string& key, const answer& addresses) {
  auto& e = entries_[key];
  auto waiting = std::exchange(e.waiting, {});
  if (addresses) {
    e.known = *addresses;
    e.good_until = steady_clock::now() + keep;
  } else {
    entries_.erase(key);
  }
  for (auto& then : waiting)
    then(addresses);
}

void address_book::close() {
  closed_ = true;
  resolver_.cancel();
  entries_.clear();
}

}  // namespace troupe

#pragma once
// Host names to addresses, off the reactor; tests put their own in its place. Asio's own types: for
// runtime/net and its tests only.

#include "runtime/core/error.hpp"
#include "runtime/net/happy_eyeballs.hpp"

#include <boost/asio/ip/address.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class name_resolver {
public:
  using addresses = std::vector<boost::asio::ip::address>;
  using answer_fn = std::function<void(result<addresses>)>;

  virtual ~name_resolver() = default;

  /// Calls `then` once, on any thread, unless the resolver goes before; it must not ask for more
  /// itself. A name that has no address of this family gives none.
  /// Errors  not_found: there is no such name; unavailable: no answer could be had now.
  virtual void look_up(const std::string& name, address_family family, answer_fn then) = 0;
};

/// The machine's own (getaddrinfo: /etc/hosts, DNS and what else the system is set up for), on a
/// few threads that come and go with the work: the call blocks for as long as the system's settings
/// say, and nothing can end it. What waits for a thread is bounded.
[[nodiscard]] std::shared_ptr<name_resolver> system_resolver();

}  // namespace troupe

#pragma once
// Host names looked up once for all connections that want them at the same time.

#include "runtime/net/name_resolver.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class reactor;

/// Addresses of hosts, kept for a while; without this, a thousand new connections to one host would
/// be a thousand lookups. Used on the reactor's thread only.
class address_book : public std::enable_shared_from_this<address_book> {
public:
  using answer = result<name_resolver::addresses>;
  using answer_fn = std::function<void(const answer&)>;

  /// `keep`: how long addresses are good.
  address_book(reactor& io, std::shared_ptr<name_resolver> names, millis keep = millis{30'000})
    : io_{io}, names_{std::move(names)}, keep_{keep} {}

  /// Calls `then` with the addresses of one family, perhaps none; at once when they are known.
  /// Addresses that have grown old serve on while no new answer can be had (RFC 8767).
  /// Errors  those of name_resolver.
  void find(const std::string& name, address_family family, answer_fn then);

  /// Gives up all lookups; their `then` is not called.
  void close();

private:
  using key = std::pair<std::string, address_family>;

  struct entry {
    name_resolver::addresses known;
    time_point good_until{};
    std::vector<answer_fn> waiting;
  };

  void found(const key& which, answer got);

  reactor& io_;
  std::shared_ptr<name_resolver> names_;
  const millis keep_;
  std::map<key, entry> entries_;
};

}  // namespace troupe

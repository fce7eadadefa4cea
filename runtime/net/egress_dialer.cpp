#include "runtime/net/egress_dialer.hpp"

#include "runtime/net/name_resolver.hpp"
#include "runtime/net/reactor.hpp"

#include <algorithm>
#include <optional>

namespace troupe {
namespace {

using boost::asio::ip::tcp;

/// One name's two lookups. Forgotten when nobody holds it any more.
class lookup {
public:
  explicit lookup(egress_dialer::resolved_fn then) : then_{std::move(then)} {}

  void take(const result<name_resolver::addresses>& got) {
    if (got)
      found_.insert(found_.end(), got->begin(), got->end());
    else
      why_ = got.error();
    if (--left_ > 0)
      return;
    // They are tried one after the other: an IPv6 that leads nowhere is commoner than no IPv4.
    std::ranges::stable_partition(found_, [](auto& address) { return address.is_v4(); });
    if (found_.empty() && why_)
      then_(fail(*std::move(why_)));
    else
      then_(std::move(found_));
  }

private:
  egress_dialer::resolved_fn then_;
  egress_dialer::addresses found_;
  std::optional<error> why_;
  std::size_t left_ = both_families.size();
};

}  // namespace

egress_dialer system_dialer(reactor& io) {
  egress_dialer out;
  out.resolve = [&io, names = system_resolver()](const std::string& name,
                                                 egress_dialer::resolved_fn then) {
    auto mine = std::make_shared<lookup>(std::move(then));
    for (auto family : both_families)
      names->look_up(name, family, [&io, weak = std::weak_ptr{mine}](auto got) {
        io.post([weak, got = std::move(got)] {
          if (auto self = weak.lock())
            self->take(got);
        });
      });
    return std::shared_ptr<void>{std::move(mine)};
  };
  out.connect = [](tcp::socket& socket, const tcp::endpoint& to, egress_dialer::connected_fn then) {
    socket.async_connect(to, std::move(then));
  };
  return out;
}

}  // namespace troupe

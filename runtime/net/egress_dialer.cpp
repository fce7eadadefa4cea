#include "runtime/net/egress_dialer.hpp"

#include "runtime/net/reactor.hpp"

#include <boost/asio/io_context.hpp>

namespace troupe {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// A resolver of its own for each lookup: Asio drops what still waits for its thread when the
/// resolver goes.
std::shared_ptr<void> look_up(asio::io_context& context, const std::string& name,
                              egress_dialer::resolved_fn then) {
  auto resolver = std::make_shared<tcp::resolver>(context);
  auto found = [then = std::move(then)](const error_code& ec,
                                        const tcp::resolver::results_type& results) {
    if (ec == asio::error::operation_aborted)
      return;
    if (ec) {
      then(fail(errc::unavailable, ec.message()));
      return;
    }
    egress_dialer::addresses all;
    for (const auto& r : results)
      all.push_back(r.endpoint().address());
    then(std::move(all));
  };
  resolver->async_resolve(name, "", std::move(found));
  return resolver;
}

}  // namespace

egress_dialer system_dialer(reactor& io) {
  egress_dialer out;
  out.resolve = [&io](const std::string& name, egress_dialer::resolved_fn then) {
    return look_up(io.context(), name, std::move(then));
  };
  out.connect = [](tcp::socket& socket, const tcp::endpoint& to, egress_dialer::connected_fn then) {
    socket.async_connect(to, std::move(then));
  };
  return out;
}

}  // namespace troupe

#include "runtime/net/egress_proxy.hpp"

#include "runtime/net/egress_session.hpp"
#include "runtime/net/on_reactor.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <unordered_set>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// The socket's protocol. Errors  invalid_argument: it is not a listening TCP socket.
result<tcp> protocol_of(int listener) {
  auto ask = [&](int option, int& answer) {
    socklen_t size = sizeof answer;
    return ::getsockopt(listener, SOL_SOCKET, option, &answer, &size) == 0;
  };
  int listens = 0;
  int protocol = 0;
  int domain = 0;
  auto is_tcp = ask(SO_ACCEPTCONN, listens) && ask(SO_PROTOCOL, protocol) && ask(SO_DOMAIN, domain)
                && listens != 0 && protocol == IPPROTO_TCP;
  if (!is_tcp)
    return fail(errc::invalid_argument,
                "descriptor " + std::to_string(listener)
                  + " is not a listening TCP socket; the egress proxy needs one");
  return domain == AF_INET6 ? tcp::v6() : tcp::v4();
}

}  // namespace

std::string_view to_string(egress_verdict verdict) noexcept {
  switch (verdict) {
  case egress_verdict::allowed:
    return "allowed";
  case egress_verdict::refused:
    return "refused";
  case egress_verdict::failed:
    return "failed";
  }
  return "";
}

struct egress_proxy::impl : std::enable_shared_from_this<egress_proxy::impl> {
  using session_ptr = std::shared_ptr<egress_session>;

  impl(reactor& r, options&& o)
    : io{r}, acceptor{r.context()}, on_connection{std::move(o.on_connection)},
      shared{std::make_shared<egress_shared>(
        egress_shared{r, std::move(o.policy), o.limits, o.dialer ? *o.dialer : system_dialer(r)})} {
  }

  reactor& io;
  tcp::acceptor acceptor;
  const record_fn on_connection;
  const std::shared_ptr<egress_shared> shared;
  std::unordered_set<session_ptr> sessions;
  std::atomic<std::size_t> open{0};
  bool accepting = false;

  void accept();
  void took(tcp::socket socket);
  void closed(const session_ptr& session);
  void shut();
};

/// Past the bound nothing is accepted: the kernel keeps a few waiting, and refuses the others.
void egress_proxy::impl::accept() {
  if (accepting || !acceptor.is_open() || sessions.size() >= shared->limits.connections)
    return;
  accepting = true;
  acceptor.async_accept([self = shared_from_this()](const error_code& ec, tcp::socket socket) {
    self->accepting = false;
    if (!self->acceptor.is_open())
      return;
    if (!ec) {
      self->took(std::move(socket));
      self->accept();
      return;
    }
    // Out of descriptors, most likely: trying again at once would spin.
    self->io.in(millis{50}, [weak = self->weak_from_this()] {
      if (auto again = weak.lock())
        again->accept();
    });
  });
}

void egress_proxy::impl::took(tcp::socket socket) {
  auto weak = weak_from_this();
  auto session = std::make_shared<egress_session>(
    shared, std::move(socket),
    egress_session::events{on_connection, [weak](const session_ptr& ended) {
                             if (auto self = weak.lock())
                               self->closed(ended);
                           }});
  sessions.insert(session);
  open = sessions.size();
  session->start();
}

void egress_proxy::impl::closed(const session_ptr& session) {
  sessions.erase(session);
  open = sessions.size();
  accept();
}

void egress_proxy::impl::shut() {
  error_code ignored;
  acceptor.close(ignored);
  for (const auto& session : std::exchange(sessions, {}))
    session->close("the sandbox was closed");
  open = 0;
}

egress_proxy::egress_proxy(std::shared_ptr<impl> i) : impl_{std::move(i)} {}

result<std::unique_ptr<egress_proxy>> egress_proxy::serve(reactor& io, int listener, options opts) {
  auto protocol = protocol_of(listener);
  if (!protocol) {
    ::close(listener);
    return fail(protocol.error());
  }
  auto made = std::make_shared<impl>(io, std::move(opts));
  error_code ec;
  made->acceptor.assign(*protocol, listener, ec);
  if (ec) {
    ::close(listener);
    return fail(errc::invalid_argument, "cannot listen on the sandbox's socket: " + ec.message());
  }
  io.post([made] { made->accept(); });
  return std::unique_ptr<egress_proxy>{new egress_proxy{std::move(made)}};
}

egress_proxy::~egress_proxy() {
  run_on_reactor(impl_->io, [state = impl_] { state->shut(); });
}

std::size_t egress_proxy::open() const noexcept {
  return impl_->open;
}

}  // namespace troupe

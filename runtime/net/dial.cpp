#include "runtime/net/dial.hpp"

#include "runtime/net/proxy_tunnel.hpp"
#include "runtime/net/reactor.hpp"
#include "runtime/net/request_head.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <utility>

namespace troupe {
namespace {

std::string explain_connect(const error_code& ec) {
  namespace sys = boost::system::errc;
  if (ec == asio::error::connection_refused)
    return "connection refused; is a server listening there?";
  if (ec == sys::no_such_file_or_directory)
    return "there is no such socket; is the server running?";
  if (ec == sys::permission_denied)
    return "permission denied on the socket; check its owner and mode";
  if (ec == sys::too_many_files_open)
    return "too many open files; raise the limit (ulimit -n) or lower the number of connections";
  if (ec == asio::error::network_unreachable || ec == asio::error::host_unreachable)
    return "cannot connect: " + ec.message() + "; check this machine's network";
  return "cannot connect: " + ec.message();
}

/// True for an address that this machine has no way to: it says less than any other failure.
bool is_no_way(const error_code& ec) {
  return ec == asio::error::network_unreachable || ec == asio::error::address_family_not_supported
         || ec == boost::system::errc::address_not_available;
}

std::string printable_start(std::string_view bytes) {
  std::string out;
  for (auto c : bytes.substr(0, 40))
    out += c >= 0x20 && c < 0x7F ? c : '.';
  return out;
}

}  // namespace

dialing::dialing(reactor& io, std::shared_ptr<address_book> names, dial_plan plan)
  : io_{io}, names_{std::move(names)}, plan_{std::move(plan)} {}

void dialing::start(done_fn then) {
  done_ = std::move(then);
  if (plan_.to.scheme == "unix") {
    found(address_family::v6, {});
    found(address_family::v4, {asio::local::stream_protocol::endpoint{plan_.to.host}});
  } else if (plan_.via) {
    look_up(plan_.via->at.host, plan_.via->at.port);
  } else {
    error_code no_address;
    asio::ip::make_address(plan_.to.host, no_address);
    look_up({plan_.to.host, !no_address}, plan_.to.port);
  }
  step();
}

void dialing::look_up(const host_name& host, std::uint16_t port) {
  if (host.is_address) {
    found(address_family::v6, {});
    found(address_family::v4, {asio::ip::tcp::endpoint{asio::ip::make_address(host.text), port}});
    return;
  }
  for (auto family : both_families)
    names_->find(host.text, family,
                 [weak = weak_from_this(), family, port](const address_book::answer& answer) {
                   auto self = weak.lock();
                   if (!self || !self->done_)
                     return;
                   if (!answer)
                     return self->not_found(family, answer.error());
                   std::vector<endpoint> where;
                   for (const auto& address : *answer)
                     where.emplace_back(asio::ip::tcp::endpoint{address, port});
                   self->found(family, std::move(where));
                   self->step();
                 });
}

void dialing::found(address_family family, std::vector<endpoint> where) {
  auto& mine = addresses_[static_cast<std::size_t>(family)];
  mine = std::move(where);
  race_.found(family, mine.size(), io_.now());
}

void dialing::not_found(address_family family, error why) {
  // "Try later" stands before "there is no such name": the other family may have been the answer.
  if (!lookup_error_ || lookup_error_->code == errc::not_found)
    lookup_error_ = std::move(why);
  found(family, {});
  step();
}

void dialing::step() {
  while (done_ && !stream_) {
    auto next = race_.next(io_.now());
    if (const auto* a = std::get_if<happy_eyeballs::attempt>(&next)) {
      attempt(addresses_[static_cast<std::size_t>(a->family)][a->index]);
      continue;
    }
    if (const auto* p = std::get_if<happy_eyeballs::pause>(&next))
      wait(p->until);
    else
      lose();
    return;
  }
}

void dialing::wait(time_point until) {
  if (alarm_ != 0)
    io_.cancel(std::exchange(alarm_, 0));
  if (until == never)
    return;
  alarm_ = io_.at(until, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self)
      return;
    self->alarm_ = 0;
    self->step();
  });
}

void dialing::attempt(const endpoint& to) {
  phase_ = http_phase::connecting;
  auto it = attempts_.emplace(attempts_.end(), io_.context());
  it->async_connect(to, [self = shared_from_this(), it](const error_code& ec) {
    if (!self->done_ || self->stream_)
      return;  // closed, or another was first: `it` is gone
    if (ec)
      self->attempt_failed(it, ec);
    else
      self->attempt_won(it);
  });
}

void dialing::attempt_failed(sockets::iterator which, const error_code& ec) {
  attempts_.erase(which);
  if (!connect_error_ || is_no_way(*connect_error_))
    connect_error_ = ec;
  race_.attempt_failed();
  step();
}

void dialing::attempt_won(sockets::iterator which) {
  stream_ = std::make_unique<byte_stream>(std::move(*which));
  drop_attempts();
  error_code not_tcp;
  stream_->socket().set_option(asio::ip::tcp::no_delay{true}, not_tcp);
  if (plan_.tls && plan_.via)
    ask_for_tunnel();
  else if (plan_.tls)
    shake_hands();
  else
    finish(std::move(stream_));
}

// --- the proxy ----------------------------------------------------------------------------------

void dialing::ask_for_tunnel() {
  phase_ = http_phase::asking_proxy;
  talk_ = std::make_unique<talk>(tunnel_request(plan_.to, *plan_.via));
  stream_->write({asio::buffer(talk_->request)},
                 [self = shared_from_this()](const error_code&, std::size_t) {
                   if (self->done_)
                     self->read_tunnel();  // also after a failed write: the proxy may have said why
                 });
}

void dialing::read_tunnel() {
  stream_->read_some(asio::buffer(talk_->buffer),
                     [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                       if (self->done_)
                         self->on_tunnel_bytes(ec, bytes);
                     });
}

void dialing::on_tunnel_bytes(const error_code& ec, std::size_t bytes) {
  std::string_view got{talk_->buffer.data(), bytes};
  auto http = talk_->reader.feed(got);
  if (http && !talk_->reader.header_done()) {
    if (ec)
      finish(fail(errc::unavailable,
                  to_string(*plan_.via) + " closed the connection without an answer"));
    else
      read_tunnel();
    return;
  }
  auto open =
    http ? read_tunnel_answer(talk_->reader.message(), plan_.to, *plan_.via) : result<void>{};
  // A server behind the tunnel waits for us: bytes that came with the answer are not its.
  if (!http || (open && talk_->reader.waiting() > 0))
    finish(fail(errc::invalid_argument, to_string(*plan_.via)
                                          + " does not answer as an HTTP proxy does: it says '"
                                          + printable_start(got) + "'; check its port and kind"));
  else if (!open)
    finish(fail(open.error()));
  else
    shake_hands();
}

// --- TLS ----------------------------------------------------------------------------------------

void dialing::shake_hands() {
  phase_ = http_phase::handshaking;
  stream_->use_tls(*plan_.tls);
  if (!expect_peer(stream_->tls(), plan_.to.host, plan_.verify)) {
    finish(fail(errc::invalid_argument, "TLS: '" + plan_.to.host + "' is not a usable host name"));
    return;
  }
  stream_->handshake(
    asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& ec) {
      if (!self->done_)
        return;
      if (ec)
        self->finish(fail(explain_handshake(ec, self->stream_->tls(), self->plan_.to.host)));
      else
        self->finish(std::move(self->stream_));
    });
}

// --- ends ---------------------------------------------------------------------------------------

/// What failed with the proxy's address failed with the proxy.
error dialing::worded(error why) const {
  if (plan_.via)
    why.detail = to_string(*plan_.via) + ": " + why.detail;
  return why;
}

void dialing::lose() {
  error why{errc::unavailable, ""};
  if (connect_error_)
    why.detail = explain_connect(*connect_error_);
  else if (lookup_error_)
    why = *lookup_error_;
  else
    why = {errc::not_found, "the host name has no address; check its spelling, or its DNS"};
  // Later: the caller's own state may not be ready for an answer that comes within start().
  io_.post([self = shared_from_this(), why = worded(std::move(why))] {
    if (self->done_)
      self->finish(fail(why));
  });
}

void dialing::finish(outcome how) {
  auto then = std::exchange(done_, nullptr);
  drop_attempts();
  if (stream_)
    stream_->close();
  then(std::move(how));
}

void dialing::drop_attempts() noexcept {
  if (alarm_ != 0)
    io_.cancel(std::exchange(alarm_, 0));
  attempts_.clear();
}

void dialing::close() noexcept {
  done_ = nullptr;
  drop_attempts();
  if (stream_)
    stream_->close();  // and kept: its handlers may still look at it
}

std::string dialing::where() const {
  std::string out{to_string(phase_)};
  if (plan_.via && phase_ <= http_phase::asking_proxy)
    out += " (" + to_string(*plan_.via) + ")";
  return out;
}

}  // namespace troupe

#include "runtime/net/egress_session.hpp"

#include "runtime/net/public_address.hpp"
#include "runtime/net/reactor.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::string_view bytes_used_up = "the sandbox's bytes for the network are used up";

std::string seconds(millis span) {
  auto text = std::to_string(span.count() / 1'000);
  if (span.count() % 1'000 != 0)
    text += "." + std::to_string(1'000 + span.count() % 1'000).substr(1);
  return text + " s";
}

/// What is allowed instead, for a model to read. Short: it stands in a status line.
std::string allowed_instead(const egress_policy& policy) {
  constexpr std::size_t shown = 5;
  if (policy.rules.empty())
    return "nothing is allowed";
  std::string out = "allowed: ";
  for (std::size_t i = 0; i < std::min(shown, policy.rules.size()); ++i)
    out += (i > 0 ? ", " : "") + to_string(policy.rules[i]);
  return policy.rules.size() > shown ? out + ", ..." : out;
}

}  // namespace

bool egress_shared::spend(std::size_t bytes) noexcept {
  if (policy.max_bytes != 0 && bytes > policy.max_bytes - bytes_moved) {
    bytes_moved = policy.max_bytes;
    return false;
  }
  bytes_moved += bytes;
  return true;
}

bool egress_shared::is_spent() const noexcept {
  return policy.max_bytes != 0 && bytes_moved >= policy.max_bytes;
}

egress_session::egress_session(std::shared_ptr<egress_shared> shared, socket client, events on)
  : shared_{std::move(shared)}, client_{std::move(client)}, server_{shared_->io.context()},
    on_{std::move(on)}, started_{shared_->io.now()}, moved_{started_} {}

void egress_session::start() {
  error_code ignored;
  client_.set_option(tcp::no_delay{true}, ignored);
  head_.resize(shared_->limits.head_bytes);
  enter(phase::reading, shared_->limits.head_time);
  read_head();
}

void egress_session::read_head() {
  client_.async_read_some(asio::buffer(head_) + got_,
                          [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                            self->on_head(ec, bytes);
                          });
}

void egress_session::on_head(const error_code& ec, std::size_t bytes) {
  if (phase_ != phase::reading)
    return;
  if (ec) {
    close("the client closed before its request was complete");
    return;
  }
  constexpr std::string_view end = "\r\n\r\n";
  auto search_from = got_ < end.size() ? 0 : got_ - end.size() + 1;
  got_ += bytes;
  auto at = std::string_view{head_}.substr(0, got_).find(end, search_from);
  if (at != std::string_view::npos)
    take_request(at + end.size());
  else if (got_ < head_.size())
    read_head();
  else
    refuse(431,
           "the request's head is longer than " + std::to_string(shared_->limits.head_bytes)
             + " bytes",
           egress_verdict::refused);
}

void egress_session::take_request(std::size_t head_end) {
  auto parsed = parse_proxy_request(std::string_view{head_}.substr(0, head_end));
  if (!parsed) {
    refuse(parsed.error().status, parsed.error().why, egress_verdict::refused);
    return;
  }
  leftover_ = head_.substr(head_end, got_ - head_end);
  request_ = *std::move(parsed);
  record_.host = request_.to.host.text;
  record_.port = request_.to.port;
  if (!shared_->policy.allows(request_.to))
    refuse(403,
           to_string(request_.to) + " is not on this sandbox's network allow list ("
             + allowed_instead(shared_->policy) + ")",
           egress_verdict::refused);
  else if (shared_->is_spent())
    refuse(403, std::string{bytes_used_up}, egress_verdict::refused);
  else
    dial();
}

void egress_session::dial() {
  enter(phase::dialing, shared_->limits.connect_time);
  record_.verdict = egress_verdict::failed;
  const auto& host = request_.to.host;
  if (host.is_address) {
    on_resolved(egress_dialer::addresses{asio::ip::make_address(host.text)});
    return;
  }
  auto handle = shared_->dialer.resolve(
    host.text, [self = shared_from_this()](const result<egress_dialer::addresses>& found) {
      if (self->phase_ == phase::dialing)
        self->on_resolved(found);
    });
  if (phase_ == phase::dialing)
    lookup_ = std::move(handle);
}

void egress_session::on_resolved(const result<egress_dialer::addresses>& found) {
  if (!found)
    refuse(502, "cannot resolve " + request_.to.host.text + ": " + found.error().detail,
           egress_verdict::failed);
  else if (found->empty())
    refuse(502, request_.to.host.text + " has no address", egress_verdict::failed);
  else
    check(*found);
}

/// One address that may not be reached refuses them all: a name that points inward and outward is
/// how a browser's or proxy's check is got around. The address itself is not told inside, where it
/// would be news about our network.
void egress_session::check(const egress_dialer::addresses& found) {
  for (const auto& each : found) {
    auto address = unmapped(each);
    const auto* what = why_not_public(address);
    if (what != nullptr
        && !shared_->policy.allows({{address.to_string(), true}, request_.to.port})) {
      record_.address = address.to_string();
      refuse(403,
             request_.to.host.text + " resolves to " + what
               + ", which the network allow list does not name",
             egress_verdict::refused);
      return;
    }
    addresses_.push_back(address);
  }
  connect_next(asio::error::host_unreachable);
}

void egress_session::connect_next(const error_code& last) {
  if (next_address_ == addresses_.size()) {
    refuse(502, "cannot connect to " + to_string(request_.to) + ": " + last.message(),
           egress_verdict::failed);
    return;
  }
  const auto& address = addresses_[next_address_++];
  record_.address = address.to_string();
  error_code ignored;
  server_.close(ignored);  // an address tried in vain leaves its socket open
  shared_->dialer.connect(server_, {address, request_.to.port},
                          [self = shared_from_this()](const error_code& ec) {
                            if (self->phase_ != phase::dialing)
                              return;
                            if (ec)
                              self->connect_next(ec);
                            else
                              self->begin_relay();
                          });
}

void egress_session::begin_relay() {
  error_code ignored;
  server_.set_option(tcp::no_delay{true}, ignored);
  record_.verdict = egress_verdict::allowed;
  relay::lead up;
  relay::lead down;
  if (request_.tunnel) {
    up.first = std::move(leftover_);
    down.first = "HTTP/1.1 200 Connection established\r\n\r\n";
  } else {
    // What a client sends after its one request is not passed on: it was not checked.
    leftover_.resize(std::min<std::uint64_t>(leftover_.size(), request_.body_bytes));
    up.most = request_.body_bytes - leftover_.size();
    up.first = request_.head + leftover_;
  }
  head_ = {};
  enter(phase::relaying, shared_->limits.idle_time);
  if (!on_moving(true, up.first.size()))
    return;
  relay_ = std::make_shared<relay>(
    std::move(client_), std::move(server_),
    relay::events{[weak = weak_from_this()](bool up_way, std::size_t bytes) {
                    auto self = weak.lock();
                    return self && self->on_moving(up_way, bytes);
                  },
                  [weak = weak_from_this()](std::string_view how) {
                    if (auto self = weak.lock())
                      self->close(how);
                  }});
  relay_->start(std::move(up), std::move(down));
}

bool egress_session::on_moving(bool up, std::size_t bytes) {
  if (!shared_->spend(bytes)) {
    close(bytes_used_up);
    return false;
  }
  moved_ = shared_->io.now();
  (up ? record_.bytes_up : record_.bytes_down) += bytes;
  return true;
}

void egress_session::refuse(unsigned status, const std::string& why, egress_verdict verdict) {
  error_code ignored;
  server_.close(ignored);
  lookup_.reset();
  record_.verdict = verdict;
  reply_ = refusal_response({status, why}, request_.method != "HEAD");
  enter(phase::refusing, shared_->limits.linger_time);
  record(why);
  asio::async_write(client_, asio::buffer(reply_),
                    [self = shared_from_this()](const error_code& ec, std::size_t) {
                      error_code gone;
                      self->client_.shutdown(socket::shutdown_send, gone);
                      if (ec)
                        self->close("");
                      else
                        self->drain();
                    });
}

/// Closing while the client still sends would reset the connection, and lose our answer.
void egress_session::drain() {
  if (phase_ != phase::refusing)
    return;
  client_.async_read_some(asio::buffer(head_),
                          [self = shared_from_this()](const error_code& ec, std::size_t) {
                            if (ec)
                              self->close("");
                            else
                              self->drain();
                          });
}

void egress_session::record(std::string_view reason) {
  if (std::exchange(recorded_, true))
    return;
  record_.reason = reason;
  record_.duration = std::chrono::duration_cast<micros>(shared_->io.now() - started_);
  if (on_.recorded)
    on_.recorded(record_);
}

void egress_session::close(std::string_view why) {
  if (std::exchange(phase_, phase::closed) == phase::closed)
    return;
  auto self = shared_from_this();
  shared_->io.cancel(alarm_);
  lookup_.reset();
  if (relay_)
    relay_->close();
  relay_.reset();
  error_code ignored;
  client_.close(ignored);
  server_.close(ignored);
  record(why);
  on_.closed(self);
}

void egress_session::enter(phase next, steady_clock::duration time) {
  phase_ = next;
  watch(after(shared_->io.now(), time));
}

void egress_session::watch(time_point until) {
  shared_->io.cancel(alarm_);
  due_ = std::min(until, after(started_, shared_->limits.total_time));
  alarm_ = shared_->io.at(due_, [weak = weak_from_this()] {
    if (auto self = weak.lock())
      self->on_time();
  });
}

void egress_session::on_time() {
  const auto& limits = shared_->limits;
  auto now = shared_->io.now();
  switch (phase_) {
  case phase::reading:
    refuse(408, "the request's head did not come within " + seconds(limits.head_time),
           egress_verdict::refused);
    break;
  case phase::dialing:
    refuse(504,
           to_string(request_.to) + " could not be reached within " + seconds(limits.connect_time),
           egress_verdict::failed);
    break;
  case phase::relaying:
    if (now >= after(started_, limits.total_time))
      close("open for longer than " + seconds(limits.total_time));
    else if (auto idle_at = after(moved_, limits.idle_time); now >= idle_at)
      close("no byte moved for " + seconds(limits.idle_time));
    else
      watch(idle_at);
    break;
  case phase::refusing:
    close("");
    break;
  case phase::closed:
    break;
  }
}

}  // namespace troupe

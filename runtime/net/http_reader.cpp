#include "runtime/net/http_reader.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <optional>
#include <variant>

namespace troupe {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t max_header_bytes = 64u << 10;
constexpr std::size_t max_unparsed = std::size_t{2} * max_header_bytes;

/// Fills an http_message as Beast's parser finds its parts.
template <bool IsRequest>
class parser final : public http::basic_parser<IsRequest> {
public:
  parser(http_message& out, std::size_t max_body_bytes, bool no_body) : out_{out} {
    this->eager(true);
    this->header_limit(max_header_bytes);
    this->body_limit(max_body_bytes);
    this->skip(no_body);
  }

private:
  using text = boost::beast::string_view;

  void on_request_impl(http::verb, text method, text target, int version, error_code&) override {
    out_.version = static_cast<unsigned>(version);
    out_.method.assign(method.data(), method.size());
    out_.target.assign(target.data(), target.size());
  }

  void on_response_impl(int status, text reason, int version, error_code&) override {
    out_.version = static_cast<unsigned>(version);
    out_.status = static_cast<unsigned>(status);
    out_.reason.assign(reason.data(), reason.size());
  }

  void on_field_impl(http::field, text name, text value, error_code&) override {
    auto& field = out_.headers.emplace_back(std::string{name.data(), name.size()},
                                            std::string{value.data(), value.size()});
    for (auto& c : field.first)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }

  void on_header_impl(error_code&) override {}

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    constexpr std::uint64_t trusted = 1u << 20;  // a peer's word alone allocates no more
    if (length)
      out_.body.reserve(static_cast<std::size_t>(std::min(*length, trusted)));
  }

  std::size_t on_body_impl(text piece, error_code&) override {
    out_.body.append(piece.data(), piece.size());
    return piece.size();
  }

  void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}

  std::size_t on_chunk_body_impl(std::uint64_t, text piece, error_code&) override {
    out_.body.append(piece.data(), piece.size());
    return piece.size();
  }

  void on_finish_impl(error_code&) override {}

  http_message& out_;
};

error explain(const error_code& ec, std::size_t max_body_bytes) {
  if (ec == http::error::body_limit)
    return {errc::over_budget,
            "the body is longer than the " + std::to_string(max_body_bytes) + " bytes allowed"};
  if (ec == http::error::header_limit)
    return {errc::over_budget,
            "the header is longer than " + std::to_string(max_header_bytes) + " bytes"};
  return {errc::corrupt, "not valid HTTP/1.1: " + ec.message()};
}

}  // namespace

std::string_view http_message::header(std::string_view name) const {
  auto it = std::find_if(headers.begin(), headers.end(), [&](auto& h) { return h.first == name; });
  return it == headers.end() ? std::string_view{} : std::string_view{it->second};
}

struct http_reader::impl {
  kind what;
  std::size_t max_body_bytes;
  bool no_body = false;
  bool started = false;
  http_message message{};
  std::string pending{};  ///< bytes not parsed yet
  std::variant<std::monostate, parser<true>, parser<false>> parse{};

  /// Calls `fn` with the parser of this kind of message.
  template <class Fn>
  auto with(Fn fn) {
    return what == kind::request ? fn(std::get<1>(parse)) : fn(std::get<2>(parse));
  }

  void begin() {
    message = {};
    if (what == kind::request)
      parse.emplace<1>(message, max_body_bytes, no_body);
    else
      parse.emplace<2>(message, max_body_bytes, no_body);
  }

  bool done() {
    return with([](auto& p) { return p.is_done(); });
  }

  bool is_interim() const {
    return what == kind::response && message.status >= 100 && message.status < 200
           && message.status != 101;
  }

  /// Parses from the front of `bytes` until it needs more or the message ends.
  result<void> parse_some(std::string_view& bytes) {
    while (!bytes.empty() && !done()) {
      error_code ec;
      auto used =
        with([&](auto& p) { return p.put(boost::asio::buffer(bytes.data(), bytes.size()), ec); });
      bytes.remove_prefix(used);
      if (ec && ec != http::error::need_more)
        return fail(explain(ec, max_body_bytes));
      if (ec || used == 0)
        break;
    }
    if (done() && is_interim()) {
      begin();
      return parse_some(bytes);
    }
    return {};
  }

  /// Beast looks at nothing before a whole header is there: a peer that speaks something else,
  /// and waits for us, would only be found out by the deadline.
  result<void> check_greeting(std::string_view bytes) const {
    constexpr std::string_view greeting = "HTTP/1.";
    auto n = std::min(bytes.size(), greeting.size());
    if (what == kind::request || bytes.substr(0, n) == greeting.substr(0, n))
      return {};
    return fail(errc::corrupt, "not HTTP");
  }
};

http_reader::http_reader(kind what, std::size_t max_body_bytes)
  : impl_{new impl{.what = what, .max_body_bytes = max_body_bytes}} {
  impl_->begin();
}

http_reader::~http_reader() = default;

void http_reader::next(bool no_body) {
  impl_->no_body = no_body;
  impl_->started = !impl_->pending.empty();
  impl_->begin();
}

result<void> http_reader::feed(std::string_view bytes) {
  auto& s = *impl_;
  s.started = s.started || !bytes.empty();
  if (done()) {
    s.pending.append(bytes);
    return {};
  }
  auto was_pending = !s.pending.empty();
  if (was_pending)
    s.pending.append(bytes);
  std::string_view rest = was_pending ? std::string_view{s.pending} : bytes;
  if (!header_done())
    if (auto ok = s.check_greeting(rest); !ok)
      return ok;
  auto ok = s.parse_some(rest);
  if (was_pending)
    s.pending.erase(0, s.pending.size() - rest.size());
  else
    s.pending.assign(rest);
  // Beast bounds the header and the body, but neither the line before a chunk nor the trailers.
  if (ok && !done() && s.pending.size() > max_unparsed)
    return fail(errc::over_budget, "a line between the parts of the body is longer than "
                                     + std::to_string(max_unparsed) + " bytes");
  return ok;
}

result<void> http_reader::feed_end() {
  auto& s = *impl_;
  if (done())
    return {};
  error_code ec;
  if (header_done())
    s.with([&](auto& p) { p.put_eof(ec); });
  if (header_done() && !ec)
    return {};
  if (!header_done())
    return fail(errc::unavailable, s.started ? "closed the connection within the header"
                                             : "closed the connection without an answer");
  return fail(errc::unavailable, "closed the connection within the body, after "
                                   + std::to_string(s.message.body.size()) + " bytes of it");
}

bool http_reader::started() const noexcept {
  return impl_->started;
}

bool http_reader::header_done() const noexcept {
  return impl_->with([](auto& p) { return p.is_header_done(); });
}

bool http_reader::done() const noexcept {
  return impl_->done();
}

bool http_reader::keep_alive() const noexcept {
  return impl_->with([](auto& p) { return p.keep_alive(); });
}

std::size_t http_reader::waiting() const noexcept {
  return done() ? impl_->pending.size() : 0;
}

http_message& http_reader::message() noexcept {
  return impl_->message;
}

}  // namespace troupe

#include "runtime/net/host_port.hpp"

#include "runtime/net/http_syntax.hpp"
#include "runtime/net/public_address.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {
namespace {

namespace ip = boost::asio::ip;

// RFC 1035, section 2.3.4; 253 is what is left for the text of 255 bytes on the wire.
constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;

bool only(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

tl::unexpected<error> refuse(std::string what) {
  return fail(errc::invalid_argument, std::move(what));
}

std::optional<host_name> read_address(const ip::address& a, const boost::system::error_code& ec) {
  if (ec)
    return std::nullopt;
  return host_name{unmapped(a).to_string(), true};
}

/// The letters are looked at first: the system's parser ends at a zero byte, and takes zones.
std::optional<host_name> read_v4(std::string_view text) {
  constexpr std::size_t longest = 15;
  if (text.size() > longest || !only(text, "0123456789."))
    return std::nullopt;
  boost::system::error_code ec;
  auto a = ip::make_address_v4(text, ec);
  return read_address(a, ec);
}

std::optional<host_name> read_v6(std::string_view text) {
  constexpr std::size_t longest = 45;
  if (text.size() > longest || !only(text, "0123456789abcdefABCDEF:."))
    return std::nullopt;
  boost::system::error_code ec;
  auto a = ip::make_address_v6(text, ec);
  return read_address(a, ec);
}

result<host_name> read_name(std::string_view text) {
  if (text.ends_with('.'))
    text.remove_suffix(1);
  if (text.empty())
    return refuse("there is no host");
  if (text.size() > longest_name)
    return refuse("the host name is longer than 253 bytes");
  auto name = to_lower(text);
  if (!only(name, "abcdefghijklmnopqrstuvwxyz0123456789-_."))
    return refuse("a host name has letters a to z, digits, '-', '_' and '.' alone; write others in "
                  "their xn-- form");
  for (std::size_t from = 0; from <= name.size();) {
    auto dot = std::min(name.find('.', from), name.size());
    if (dot == from || dot - from > longest_label)
      return refuse("each part of a host name has 1 to 63 bytes");
    from = dot + 1;
  }
  return host_name{std::move(name), false};
}

}  // namespace

result<host_name> parse_host(std::string_view text) {
  if (text.starts_with('[')) {
    auto address = text.ends_with(']') ? read_v6(text.substr(1, text.size() - 2)) : std::nullopt;
    if (!address)
      return refuse("between [ and ] stands an IPv6 address, without a zone");
    return *address;
  }
  if (text.find(':') != std::string_view::npos)
    return refuse("an IPv6 address needs [brackets]");
  if (auto address = read_v4(text))
    return *address;
  return read_name(text);
}

bool is_localhost(std::string_view name) noexcept {
  return name == "localhost" || name.ends_with(".localhost");
}

std::optional<std::uint16_t> parse_port(std::string_view digits) noexcept {
  std::uint16_t port = 0;
  auto* last = digits.data() + digits.size();
  auto [end, ec] = std::from_chars(digits.data(), last, port);
  if (ec != std::errc{} || end != last || port == 0)
    return std::nullopt;
  return port;
}

host_port_text split_host_port(std::string_view text) noexcept {
  auto colon = text.rfind(':');
  auto bracket = text.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

result<host_port> parse_host_port(std::string_view text,
                                  std::optional<std::uint16_t> default_port) {
  auto parts = split_host_port(text);
  auto host = parse_host(parts.host);
  if (!host)
    return fail(host.error());
  auto port = parts.port ? parse_port(*parts.port) : default_port;
  if (!port)
    return refuse(parts.port ? "the port must be a number from 1 to 65535" : "the port is missing");
  return host_port{*std::move(host), *port};
}

std::string to_string(const host_name& host) {
  return host.text.find(':') == std::string::npos ? host.text : "[" + host.text + "]";
}

std::string to_string(const host_port& to) {
  return to_string(to.host) + ":" + std::to_string(to.port);
}

}  // namespace troupe

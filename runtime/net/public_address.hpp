#pragma once
// Which addresses belong to the public internet. Asio's own types: for runtime/net only.

#include <boost/asio/ip/address.hpp>

namespace troupe {

/// The IPv4 address that an IPv4-mapped IPv6 address is; any other address as it is.
[[nodiscard]] boost::asio::ip::address unmapped(const boost::asio::ip::address& a);

/// What kind of address it is when it is none of the public internet's, e.g. "a loopback address";
/// nullptr for a public one. An address that carries an IPv4 address is judged by that one.
/// Source  IANA's special-purpose address registries for IPv4 and IPv6; RFC 6890.
[[nodiscard]] const char* why_not_public(const boost::asio::ip::address& a);

}  // namespace troupe

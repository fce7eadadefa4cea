#pragma once
// "host:port" as URLs, requests and rules write it. Strict: what programs disagree about is
// refused.

#include "runtime/core/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A host: a name in lower case without a dot at its end, or an address in its usual text, IPv6
/// without brackets, IPv4-mapped IPv6 as the IPv4 address that it is.
struct host_name {
  std::string text;
  bool is_address = false;

  bool operator==(const host_name&) const = default;
};

struct host_port {
  host_name host;
  std::uint16_t port = 0;

  bool operator==(const host_port&) const = default;
};

/// Four decimal numbers or a bracketed IPv6 address is an address. All else is a name, also
/// "2130706433" or "0x7f.1", which some programs take for addresses.
/// Errors  invalid_argument: what is wrong; the detail does not repeat the text.
[[nodiscard]] result<host_name> parse_host(std::string_view text);

/// "localhost" and what ends in ".localhost": this machine, whatever a name server would say.
/// Source  RFC 6761, section 6.3.
[[nodiscard]] bool is_localhost(std::string_view name) noexcept;

/// A number from 1 to 65535 in decimal digits.
[[nodiscard]] std::optional<std::uint16_t> parse_port(std::string_view digits) noexcept;

/// Host and port at the last colon outside of brackets; no port when there is none.
struct host_port_text {
  std::string_view host;
  std::optional<std::string_view> port;
};
[[nodiscard]] host_port_text split_host_port(std::string_view text) noexcept;

/// Errors  invalid_argument, as of parse_host; also no port and no `default_port`.
[[nodiscard]] result<host_port> parse_host_port(std::string_view text,
                                                std::optional<std::uint16_t> default_port = {});

/// With brackets for IPv6.
[[nodiscard]] std::string to_string(const host_name& host);
[[nodiscard]] std::string to_string(const host_port& to);

}  // namespace troupe

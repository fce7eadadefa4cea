#pragma once
// Which proxy a request goes through, from the variables that other programs read too.

#include "runtime/core/error.hpp"
#include "runtime/net/host_port.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct url;

struct proxy_server {
  host_port at;
  std::string authorization{};  ///< value of Proxy-Authorization; empty: none
  std::string named_in{};       ///< "HTTPS_PROXY", "--proxy"

  bool operator==(const proxy_server&) const = default;
};

/// "the proxy http://host:port (HTTPS_PROXY)", without its password.
[[nodiscard]] std::string to_string(const proxy_server& proxy);

/// "[http://][user:password@]host[:port]", port 80 when there is none; user and password may be
/// percent-encoded.
/// Errors  invalid_argument: names the variable, never shows what stands before an '@'.
[[nodiscard]] result<proxy_server> parse_proxy(std::string_view text, std::string named_in);

/// One entry of NO_PROXY.
struct proxy_exemption {
  std::string name{};                      ///< in lower case; empty: an address or a network
  bool itself = true;                      ///< false: only what is below the name
  std::array<std::uint8_t, 16> network{};  ///< an IPv4 address in its mapped form
  unsigned bits = 0;                       ///< of `network` that count, from the front
  std::uint16_t port = 0;                  ///< 0: any

  bool operator==(const proxy_exemption&) const = default;
};

/// Value. The default goes straight.
struct proxy_settings {
  std::optional<result<proxy_server>> for_http{};
  std::optional<result<proxy_server>> for_https{};
  bool never = false;  ///< "*" in NO_PROXY
  std::vector<proxy_exemption> exempt{};
  std::vector<std::string> not_understood{};  ///< entries of NO_PROXY, left out

  /// The proxy for requests to `to`; null to go straight, as to unix sockets and this machine
  /// always. What comes back belongs to the settings.
  /// Errors  invalid_argument: the one that is set for it cannot be used.
  [[nodiscard]] result<const proxy_server*> select(const url& to) const;
};

/// Reads http_proxy, https_proxy, all_proxy and no_proxy, in lower case before upper; an empty one
/// counts as not set. HTTP_PROXY is not read where REQUEST_METHOD is set: there a web server may
/// have made it of a request's "Proxy" header. `option` stands before the variables: a proxy for
/// all, "none" for no proxy at all, "" for what the variables say.
/// Source  curl's manual, section "Environment"; Go's golang.org/x/net/http/httpproxy;
///         https://httpoxy.org.
[[nodiscard]] proxy_settings
proxies_from(const std::function<std::optional<std::string>(const std::string&)>& variable,
             std::string_view option);

}  // namespace troupe

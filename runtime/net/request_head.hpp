#pragma once
// A request's first bytes: request line and header, checked and assembled. No socket.

#include "runtime/core/error.hpp"
#include "runtime/net/http.hpp"

#include <string>

namespace troupe {

struct proxy_server;

/// "http://host:port" or "unix:///path": what a connection may be reused for, and how messages
/// name the peer.
[[nodiscard]] std::string peer_name(const url& u);

/// "host:port", with brackets for IPv6.
[[nodiscard]] std::string authority(const url& u);

/// A request whose words could break the framing is refused: they could smuggle a second one.
/// Errors  invalid_argument: which part, and why.
[[nodiscard]] result<void> check_request(const http_request& r);

/// Request line and header, with the empty line. Adds host, user-agent and content-length; a
/// caller's own host and user-agent win, its content-length and transfer-encoding are left out.
/// With `via`, as that proxy wants it: the target in absolute form (RFC 9112, section 3.2.2).
[[nodiscard]] std::string request_head(const http_request& r, const proxy_server* via = nullptr);

}  // namespace troupe

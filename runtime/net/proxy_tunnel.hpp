#pragma once
// What we say to a proxy, and what its answers mean. No socket.

#include "runtime/core/error.hpp"
#include "runtime/net/http_reader.hpp"
#include "runtime/net/proxy_settings.hpp"

#include <string>

namespace troupe {

/// A CONNECT for the host and port of `to`, whole. RFC 9110, section 9.3.6.
[[nodiscard]] std::string tunnel_request(const url& to, const proxy_server& via);

/// Errors  denied: the proxy wants, or does not take, a password, or does not let us there;
///         unavailable: it could not reach the host, or failed.
[[nodiscard]] result<void> read_tunnel_answer(const http_message& answer, const url& to,
                                              const proxy_server& via);

/// What a 407 means, in a line with the mend.
[[nodiscard]] error password_wanted(const proxy_server& via);

}  // namespace troupe

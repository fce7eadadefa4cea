#pragma once
// What a client asks of a proxy: a tunnel, or one request to be passed on. Read strictly, since the
// client is hostile and the server behind us may read sloppily. No socket.

#include "runtime/net/host_port.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

struct proxy_request {
  bool tunnel = false;  ///< CONNECT
  std::string method;
  host_port to;
  std::string head;              ///< what goes to the server instead; "" for a tunnel
  std::uint64_t body_bytes = 0;  ///< that follow the client's head; 0 for a tunnel
};

/// An answer of the proxy's own. `why` is one line of printable ASCII.
struct proxy_refusal {
  unsigned status = 400;
  std::string why;
};

/// Reads a request's head, its empty line included: "CONNECT host:port" or "GET http://host/path".
/// The head that goes on has the target in origin form, the URL's own host, no header that is for
/// this hop alone, and says that the connection ends with the answer.
/// Errors  400: not such a request; 411: a body whose length is not given.
/// Source  RFC 9110, sections 7.6.1 and 9.3.6; RFC 9112, sections 3.2 and 6.
[[nodiscard]] tl::expected<proxy_request, proxy_refusal> parse_proxy_request(std::string_view head);

/// The refusal as a whole HTTP answer, after which the connection ends. The reason stands in the
/// status line too: clients show a tunnel's refusal by that line alone.
[[nodiscard]] std::string refusal_response(const proxy_refusal& refusal, bool with_body);

}  // namespace troupe

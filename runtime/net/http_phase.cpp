#include "runtime/net/http_phase.hpp"

namespace troupe {

std::string_view to_string(http_phase phase) noexcept {
  switch (phase) {
  case http_phase::queued:
    return "while waiting for a free connection";
  case http_phase::resolving:
    return "while looking up the host name";
  case http_phase::connecting:
    return "while connecting";
  case http_phase::asking_proxy:
    return "while waiting for the proxy's answer";
  case http_phase::handshaking:
    return "during the TLS handshake";
  case http_phase::sending:
    return "while sending the request";
  case http_phase::waiting:
    return "while waiting for the answer's first byte";
  case http_phase::receiving:
    return "while receiving the answer";
  }
  return "";
}

}  // namespace troupe

#include "runtime/net/proxy_tunnel.hpp"

#include "runtime/net/http_syntax.hpp"
#include "runtime/net/request_head.hpp"

namespace troupe {
namespace {

constexpr unsigned password_needed = 407;

/// "403 Forbidden": the proxy's own words, of which some proxies make their reasons.
std::string status_of(const http_message& m) {
  constexpr std::size_t most = 200;
  std::string out = std::to_string(m.status);
  if (!m.reason.empty())
    out += " " + m.reason.substr(0, most);
  for (auto& c : out)
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '.' : c;
  return out;
}

}  // namespace

std::string tunnel_request(const url& to, const proxy_server& via) {
  auto where = authority(to);
  std::string out = "CONNECT " + where + " HTTP/1.1\r\nhost: " + where + "\r\n";
  out += "user-agent: troupe\r\n";
  if (!via.authorization.empty())
    out += "proxy-authorization: " + via.authorization + "\r\n";
  return out + "\r\n";
}

error password_wanted(const proxy_server& via) {
  auto form = "http://user:password@" + to_string(via.at);
  auto where = via.named_in.starts_with("--") ? "HTTP_PROXY and HTTPS_PROXY" : via.named_in;
  if (via.authorization.empty())
    return {errc::denied,
            to_string(via) + " wants a user and a password (407); write " + form + " in " + where};
  return {errc::denied, to_string(via) + " does not take the user and password given (407); check "
                          + "them in " + via.named_in};
}

result<void> read_tunnel_answer(const http_message& answer, const url& to,
                                const proxy_server& via) {
  if (answer.status / 100 == 2)
    return {};
  if (answer.status == password_needed)
    return fail(password_wanted(via));
  auto who = to_string(via);
  auto words = " (" + status_of(answer) + ")";
  if (answer.status / 100 == 5 && answer.status != 501)
    return fail(errc::unavailable, who + " could not reach " + authority(to) + words
                                     + "; if it need not go through the proxy, name it in "
                                       "NO_PROXY");
  return fail(errc::denied, who + " does not open a connection to " + authority(to) + words
                              + "; ask who runs it, or name the host in NO_PROXY");
}

}  // namespace troupe

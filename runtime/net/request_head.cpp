#include "runtime/net/request_head.hpp"

#include "runtime/net/http_syntax.hpp"
#include "runtime/net/proxy_settings.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

bool has_header(const http_request& r, std::string_view name) {
  return std::any_of(r.headers.begin(), r.headers.end(),
                     [&](auto& h) { return same_name(h.first, name); });
}

void append_host(std::string& out, const url& u) {
  auto default_port = u.scheme == "https" ? 443 : 80;
  if (u.scheme == "unix")
    out += "localhost";
  else if (u.host.find(':') == std::string::npos)
    out += u.host;
  else
    out.append("[").append(u.host).append("]");
  if (u.scheme != "unix" && u.port != default_port)
    out.append(":").append(std::to_string(u.port));
}

}  // namespace

std::string peer_name(const url& u) {
  if (u.scheme == "unix")
    return "unix://" + u.host;
  return u.scheme + "://" + authority(u);
}

std::string authority(const url& u) {
  auto host = u.host.find(':') == std::string::npos ? u.host : "[" + u.host + "]";
  return host + ":" + std::to_string(u.port);
}

result<void> check_request(const http_request& r) {
  if (!is_token(r.method))
    return fail(errc::invalid_argument, "'" + r.method + "' is not an HTTP method");
  if (has_control(r.target) || r.target.find(' ') != std::string::npos)
    return fail(errc::invalid_argument, "the target has blanks or control characters");
  constexpr std::size_t longest_socket_path = 107;
  if (r.to.scheme == "unix" && r.to.host.size() > longest_socket_path)
    return fail(errc::invalid_argument, "a unix socket's path has at most 107 bytes");
  for (auto& [name, value] : r.headers)
    if (!is_token(name) || has_control(value))
      return fail(errc::invalid_argument,
                  "the header '" + name + "' has characters that HTTP does not allow");
  return {};
}

std::string request_head(const http_request& r, const proxy_server* via) {
  std::size_t body_bytes = 0;
  for (auto piece : r.body)
    body_bytes += piece.size();
  std::string out;
  out.reserve(512);
  out.append(r.method).append(" ");
  if (via != nullptr) {
    out.append("http://");
    append_host(out, r.to);
  }
  out.append(r.target.empty() ? "/" : r.target).append(" HTTP/1.1\r\n");
  if (via != nullptr && !via->authorization.empty())
    out.append("proxy-authorization: ").append(via->authorization).append("\r\n");
  if (!has_header(r, "host")) {
    out += "host: ";
    append_host(out, r.to);
    out += "\r\n";
  }
  if (!has_header(r, "user-agent"))
    out += "user-agent: troupe\r\n";
  // The framing is ours to say: a caller's own word for it could only contradict.
  for (auto& [name, value] : r.headers)
    if (!same_name(name, "content-length") && !same_name(name, "transfer-encoding"))
      out.append(name).append(": ").append(value).append("\r\n");
  if (body_bytes > 0 || (r.method != "GET" && r.method != "HEAD"))
    out.append("content-length: ").append(std::to_string(body_bytes)).append("\r\n");
  out += "\r\n";
  return out;
}

}  // namespace troupe

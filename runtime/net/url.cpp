#include "runtime/core/text.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_syntax.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {
namespace {

constexpr std::string_view accepted =
  "write http://host[:port][/path], https://... or unix:///path/to/socket";

tl::unexpected<error> refuse(std::string_view text, std::string_view what) {
  return fail(errc::invalid_argument, "'" + std::string{text} + "' is not a usable URL: "
                                        + std::string{what} + "; " + std::string{accepted});
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c != 0x7F; });
}

/// Splits host and port; the port's digits are left in `port`, host brackets taken off.
/// Returns what is wrong, or "".
std::string_view split_authority(std::string_view authority, std::string& host,
                                 std::string_view& port) {
  if (authority.find('@') != std::string_view::npos)
    return "user names and passwords in URLs are not accepted";
  auto colon = authority.rfind(':');
  if (authority.starts_with('[')) {
    auto close = authority.find(']');
    if (close == std::string_view::npos)
      return "the '[' has no ']'";
    host = to_lower(authority.substr(1, close - 1));
    authority.remove_prefix(close + 1);
    if (!authority.empty() && authority.front() != ':')
      return "only a port may follow the ']'";
    port = authority.empty() ? authority : authority.substr(1);
    return authority.size() == 1 ? "the port is missing after ':'" : "";
  }
  host = to_lower(authority.substr(0, colon));
  if (host.find(':') != std::string::npos)
    return "an IPv6 address needs [brackets]";
  if (colon == std::string_view::npos)
    return {};
  port = authority.substr(colon + 1);
  return port.empty() ? "the port is missing after ':'" : "";
}

result<url> parse_unix(std::string_view text, std::string_view rest) {
  constexpr std::size_t longest_path = 107;  // sockaddr_un
  if (!rest.starts_with('/') || rest.size() < 2)
    return refuse(text, "a socket's path must be absolute");
  if (rest.size() > longest_path)
    return refuse(text, "a socket's path has at most 107 bytes");
  return url{"unix", std::string{rest}, 0, ""};
}

}  // namespace

result<url> parse_url(std::string_view text) {
  auto colon = text.find("://");
  if (colon == std::string_view::npos)
    return refuse(text, "it has no scheme");
  if (!is_printable(text))
    return refuse(text, "it has blanks or control characters");
  url out;
  out.scheme = to_lower(text.substr(0, colon));
  auto rest = text.substr(colon + 3);
  if (out.scheme == "unix")
    return parse_unix(text, rest);
  if (out.scheme != "http" && out.scheme != "https")
    return refuse(text, "the scheme '" + out.scheme + "' is unknown"
                          + did_you_mean(out.scheme, {"http", "https", "unix"}));
  if (rest.find_first_of("?#") != std::string_view::npos)
    return refuse(text, "it has a query or fragment");
  auto slash = std::min(rest.find('/'), rest.size());
  std::string_view port;
  if (auto wrong = split_authority(rest.substr(0, slash), out.host, port); !wrong.empty())
    return refuse(text, wrong);
  if (out.host.empty())
    return refuse(text, "it has no host");
  out.port = out.scheme == "https" ? 443 : 80;
  if (!port.empty()) {
    auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (ec != std::errc{} || end != port.data() + port.size() || out.port == 0)
      return refuse(text, "the port must be a number from 1 to 65535");
  }
  out.path = rest.substr(slash);
  while (out.path.ends_with('/'))
    out.path.pop_back();
  return out;
}

}  // namespace troupe

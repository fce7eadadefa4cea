#include "runtime/net/proxy_request.hpp"

#include "runtime/core/text.hpp"
#include "runtime/net/http_syntax.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace troupe {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::uint16_t http_port = 80;
constexpr std::size_t max_fields = 128;  // each is compared with each word of "Connection"

struct field {
  std::string_view name;
  std::string_view value;
};

using fields = std::vector<field>;
using refused = tl::unexpected<proxy_refusal>;

refused refuse(std::string why, unsigned status = 400) {
  return refused{proxy_refusal{status, std::move(why)}};
}

struct request_line {
  std::string_view method, target, version;
};

/// The text up to the first `end`, which is taken off too.
std::optional<std::string_view> take(std::string_view& rest, std::string_view end) {
  auto at = rest.find(end);
  if (at == std::string_view::npos)
    return std::nullopt;
  auto taken = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return taken;
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

std::optional<request_line> read_request_line(std::string_view line) {
  auto method = take(line, " ");
  auto target = take(line, " ");
  if (!method || !target || !is_token(*method) || target->empty() || !is_visible(*target))
    return std::nullopt;
  if (line != "HTTP/1.1" && line != "HTTP/1.0")
    return std::nullopt;
  return request_line{*method, *target, line};
}

/// Nothing when a line is no header field, or they are too many; a lone CR, LF or NUL is a control
/// character here.
std::optional<fields> read_fields(std::string_view rest) {
  fields out;
  while (auto line = take(rest, line_end)) {
    if (line->empty())
      return rest.empty() ? std::optional{std::move(out)} : std::nullopt;
    auto name = take(*line, ":");
    if (!name || !is_token(*name) || has_control(*line) || out.size() == max_fields)
      return std::nullopt;
    out.push_back({*name, trim(*line)});
  }
  return std::nullopt;
}

/// True when `name` is an element of the comma-separated `list`.
bool names(std::string_view list, std::string_view name) {
  while (true) {
    auto comma = std::min(list.find(','), list.size());
    if (same_name(trim(list.substr(0, comma)), name))
      return true;
    if (comma == list.size())
      return false;
    list.remove_prefix(comma + 1);
  }
}

bool starts_with_name(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && same_name(text.substr(0, prefix.size()), prefix);
}

/// True for what must not reach the server: it concerns the proxy, or is written anew.
bool stays_here(std::string_view name, const fields& all) {
  static constexpr std::string_view always[] = {"connection", "keep-alive",        "te",     "host",
                                                "trailer",    "transfer-encoding", "upgrade"};
  if (same_name(name, "content-length"))
    return false;  // what "Connection" says of it would take the body's end away
  if (starts_with_name(name, "proxy-"))
    return true;
  auto named = [&](const field& f) {
    return same_name(f.name, "connection") && names(f.value, name);
  };
  return std::ranges::any_of(always, [&](auto word) { return same_name(name, word); })
         || std::ranges::any_of(all, named);
}

/// Two lengths, or a length and chunks, are how requests are smuggled: none of it is passed on.
tl::expected<std::uint64_t, proxy_refusal> read_body_bytes(const fields& all) {
  std::optional<std::uint64_t> bytes;
  for (const auto& f : all) {
    if (same_name(f.name, "transfer-encoding"))
      return refuse("a request through this proxy gives its body's length in Content-Length", 411);
    if (!same_name(f.name, "content-length"))
      continue;
    std::uint64_t n = 0;
    auto* last = f.value.data() + f.value.size();
    auto [end, ec] = std::from_chars(f.value.data(), last, n);
    if (bytes || ec != std::errc{} || end != last)
      return refuse("Content-Length must be one number");
    bytes = n;
  }
  return bytes.value_or(0);
}

std::string forwarded_head(const request_line& line, const host_port& to, std::string_view path,
                           const fields& all) {
  std::string out;
  out.append(line.method).append(path.starts_with('/') ? " " : " /").append(path);
  out.append(" ").append(line.version).append("\r\nHost: ");
  out.append(to.port == http_port ? to_string(to.host) : to_string(to)).append(line_end);
  for (const auto& f : all)
    if (!stays_here(f.name, all))
      out.append(f.name).append(": ").append(f.value).append(line_end);
  return out.append("Connection: close\r\n\r\n");
}

tl::expected<proxy_request, proxy_refusal> read_tunnel(const request_line& line) {
  auto to = parse_host_port(line.target);
  if (!to)
    return refuse("CONNECT needs host:port: " + to.error().detail);
  return proxy_request{true, "CONNECT", *std::move(to), {}, 0};
}

tl::expected<proxy_request, proxy_refusal> read_forward(const request_line& line,
                                                        const fields& all) {
  constexpr std::string_view scheme = "http://";
  if (!starts_with_name(line.target, scheme))
    return refuse("this is a proxy: ask for http://host/path, or CONNECT host:port for all else");
  auto rest = line.target.substr(scheme.size());
  auto slash = std::min(rest.find_first_of("/?#"), rest.size());
  auto authority = rest.substr(0, slash);
  auto path = rest.substr(slash);
  if (authority.find('@') != std::string_view::npos)
    return refuse("user names and passwords in URLs are not accepted");
  if (path.find('#') != std::string_view::npos)
    return refuse("a URL's fragment is not sent");
  auto to = parse_host_port(authority, http_port);
  if (!to)
    return refuse("the URL's host is not usable: " + to.error().detail);
  auto body_bytes = read_body_bytes(all);
  if (!body_bytes)
    return refused{body_bytes.error()};
  return proxy_request{false, std::string{line.method}, *to, forwarded_head(line, *to, path, all),
                       *body_bytes};
}

}  // namespace

tl::expected<proxy_request, proxy_refusal> parse_proxy_request(std::string_view head) {
  auto first = take(head, line_end);
  auto line = first ? read_request_line(*first) : std::nullopt;
  if (!line)
    return refuse("the first line is not that of an HTTP/1.1 request to a proxy");
  auto all = read_fields(head);
  if (!all)
    return refuse("a header line is not valid, or there are more than 128");
  return line->method == "CONNECT" ? read_tunnel(*line) : read_forward(*line, *all);
}

std::string refusal_response(const proxy_refusal& refusal, bool with_body) {
  auto body = refusal.why + "\n";
  std::string out = "HTTP/1.1 " + std::to_string(refusal.status) + " " + refusal.why + "\r\n";
  out += "Content-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  out += "Connection: close\r\n\r\n";
  return with_body ? out + body : out;
}

}  // namespace troupe

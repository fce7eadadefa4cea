#include "runtime/net/proxy_settings.hpp"

#include "runtime/core/base64.hpp"
#include "runtime/core/text.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/http_syntax.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <arpa/inet.h>

namespace troupe {
namespace {

using address_bytes = std::array<std::uint8_t, 16>;
using variable_fn = std::function<std::optional<std::string>(const std::string&)>;

constexpr std::string_view accepted = "write http://[user:password@]host[:port]";
constexpr unsigned mapped_prefix = 96;  // bits before an IPv4 address in its mapped form

int digit_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  auto low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto high = text[i] == '%' && i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    auto low = high < 0 ? -1 : digit_of(text[i + 2]);
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Source: RFC 7617.
std::string basic_authorization(std::string_view userinfo) {
  auto colon = std::min(userinfo.find(':'), userinfo.size());
  auto user = percent_decoded(userinfo.substr(0, colon));
  auto password = percent_decoded(userinfo.substr(std::min(colon + 1, userinfo.size())));
  return "Basic " + to_base64(user + ":" + password);
}

std::optional<address_bytes> bytes_of(std::string_view host) {
  auto bracketed = host.find(':') == std::string_view::npos || host.starts_with('[')
                     ? std::string{host}
                     : "[" + std::string{host} + "]";
  auto parsed = parse_host(bracketed);
  if (!parsed || !parsed->is_address)
    return std::nullopt;
  address_bytes out{};
  if (parsed->text.find(':') != std::string::npos)
    return ::inet_pton(AF_INET6, parsed->text.c_str(), out.data()) == 1 ? std::optional{out}
                                                                        : std::nullopt;
  out[10] = out[11] = 0xFF;
  return ::inet_pton(AF_INET, parsed->text.c_str(), &out[12]) == 1 ? std::optional{out}
                                                                   : std::nullopt;
}

bool is_v4(const address_bytes& a) {
  return std::all_of(a.begin(), a.begin() + 10, [](auto b) { return b == 0; }) && a[10] == 0xFF
         && a[11] == 0xFF;
}

bool is_within(const address_bytes& a, const proxy_exemption& e) {
  for (unsigned bit = 0; bit < e.bits; bit += 8) {
    auto left = std::min(8U, e.bits - bit);
    auto mask = static_cast<std::uint8_t>(0xFF00U >> left);
    if (((a[bit / 8] ^ e.network[bit / 8]) & mask) != 0)
      return false;
  }
  return true;
}

bool covers(const proxy_exemption& e, std::string_view host, std::uint16_t port,
            const std::optional<address_bytes>& address) {
  if (e.port != 0 && e.port != port)
    return false;
  if (e.name.empty())
    return address && is_within(*address, e);
  if (address)
    return false;  // a name says nothing about addresses: "1" is no suffix of 10.0.0.1
  if (host == e.name)
    return e.itself;
  return host.size() > e.name.size() && host.ends_with(e.name)
         && host[host.size() - e.name.size() - 1] == '.';
}

/// Nothing when `text` is no "address/bits".
std::optional<proxy_exemption> parse_network(std::string_view text) {
  auto slash = text.find('/');
  auto address = bytes_of(text.substr(0, slash));
  auto digits = text.substr(slash + 1);
  unsigned bits = 0;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (!address || ec != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  auto offset = text.find(':') == std::string_view::npos ? mapped_prefix : 0U;
  if (bits > 128 - offset)
    return std::nullopt;
  return proxy_exemption{.network = *address, .bits = bits + offset};
}

std::optional<proxy_exemption> parse_exemption(std::string_view text) {
  if (text.find('/') != std::string_view::npos)
    return parse_network(text);
  if (auto address = bytes_of(text))
    return proxy_exemption{.network = *address, .bits = 128};
  auto parts = split_host_port(text);
  proxy_exemption out;
  if (parts.port) {
    auto port = parse_port(*parts.port);
    if (!port)
      return std::nullopt;
    out.port = *port;
  }
  if (auto address = bytes_of(parts.host)) {
    out.network = *address;
    out.bits = 128;
    return out;
  }
  out.itself = !parts.host.starts_with("*.");
  if (auto dot = parts.host.find_first_not_of("*.");
      parts.host.starts_with("*.") || parts.host.starts_with('.'))
    parts.host.remove_prefix(std::min(dot, parts.host.size()));
  auto name = parse_host(parts.host);
  if (!name)
    return std::nullopt;
  out.name = name->text;
  return out;
}

void read_exemptions(std::string_view list, proxy_settings& into) {
  constexpr std::string_view between = ", \t";
  while (true) {
    list.remove_prefix(std::min(list.find_first_not_of(between), list.size()));
    if (list.empty())
      return;
    auto entry = list.substr(0, list.find_first_of(between));
    list.remove_prefix(entry.size());
    if (entry == "*")
      into.never = true;
    else if (auto exemption = parse_exemption(entry))
      into.exempt.push_back(*std::move(exemption));
    else
      into.not_understood.emplace_back(entry);
  }
}

struct named_value {
  std::string name, value;
};

/// The first of them that is set and not empty.
std::optional<named_value> first_set(const variable_fn& variable,
                                     std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (auto value = variable(name); value && !value->empty())
      return named_value{name, *std::move(value)};
  return std::nullopt;
}

bool is_this_machine(std::string_view host, const std::optional<address_bytes>& address) {
  if (!address)
    return is_localhost(host);
  constexpr address_bytes v6_loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return *address == v6_loopback || (is_v4(*address) && (*address)[12] == 127);
}

}  // namespace

std::string to_string(const proxy_server& proxy) {
  return "the proxy http://" + to_string(proxy.at) + " (" + proxy.named_in + ")";
}

result<proxy_server> parse_proxy(std::string_view text, std::string named_in) {
  auto refuse = [&](const std::string& what) {
    return fail(errc::invalid_argument, "the proxy in " + named_in + " cannot be used: " + what
                                          + "; " + std::string{accepted});
  };
  if (auto scheme = text.find("://"); scheme != std::string_view::npos) {
    if (auto name = to_lower(text.substr(0, scheme)); name != "http")
      return refuse("proxies of the kind '" + name + "' are not supported");
    text.remove_prefix(scheme + 3);
  }
  if (text.ends_with('/'))
    text.remove_suffix(1);
  proxy_server out;
  if (auto at = text.rfind('@'); at != std::string_view::npos) {
    out.authorization = basic_authorization(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  constexpr std::uint16_t http_port = 80;
  auto where = parse_host_port(text, http_port);
  if (!where)
    return refuse(where.error().detail);
  out.at = *std::move(where);
  out.named_in = std::move(named_in);
  return out;
}

result<const proxy_server*> proxy_settings::select(const url& to) const {
  const auto& chosen = to.scheme == "https" ? for_https : for_http;
  if (!chosen || never || to.scheme == "unix")
    return nullptr;
  std::string_view host = to.host;
  if (host.ends_with('.'))
    host.remove_suffix(1);
  auto address = bytes_of(host);
  auto exempted = [&](const proxy_exemption& e) { return covers(e, host, to.port, address); };
  if (is_this_machine(host, address) || std::ranges::any_of(exempt, exempted))
    return nullptr;
  if (!*chosen)
    return fail(chosen->error());
  return &**chosen;
}

proxy_settings proxies_from(const variable_fn& variable, std::string_view option) {
  proxy_settings out;
  if (option == "none")
    return out;
  if (auto list = first_set(variable, {"no_proxy", "NO_PROXY"}))
    read_exemptions(list->value, out);
  if (!option.empty()) {
    // Options are shown by --explain and kept in a batch's record.
    out.for_http = out.for_https =
      option.find('@') == std::string_view::npos
        ? parse_proxy(option, "--proxy")
        : fail(errc::invalid_argument, "the proxy in --proxy cannot be used: it has a password; "
                                       "give that one in HTTP_PROXY and HTTPS_PROXY");
    return out;
  }
  auto from_web_server = variable("REQUEST_METHOD").has_value();
  auto http = from_web_server
                ? first_set(variable, {"http_proxy", "all_proxy", "ALL_PROXY"})
                : first_set(variable, {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"});
  auto https = first_set(variable, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  if (http)
    out.for_http = parse_proxy(http->value, http->name);
  if (https)
    out.for_https = parse_proxy(https->value, https->name);
  return out;
}

}  // namespace troupe

#include "runtime/net/egress_policy.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

bool matches(const egress_rule& rule, const host_port& to) noexcept {
  if ((rule.port != 0 && rule.port != to.port) || rule.host.is_address != to.host.is_address)
    return false;
  if (!rule.subdomains)
    return rule.host.text == to.host.text;
  std::string_view name = to.host.text;
  if (!name.ends_with(rule.host.text))
    return false;
  name.remove_suffix(rule.host.text.size());
  return name.size() > 1 && name.back() == '.';
}

/// "127.1", "2130706433" or "0x7f.1": a name to us, an address to whoever wrote it.
bool looks_like_address(std::string_view name) {
  auto last = name.substr(name.rfind('.') + 1);
  return last.starts_with("0x") || last.find_first_not_of("0123456789") == std::string_view::npos;
}

result<egress_rule> parse_rule(std::string_view text) {
  auto wrong = [](std::string what) { return fail(errc::invalid_argument, std::move(what)); };
  if (text.find('/') != std::string_view::npos)
    return wrong("a rule has no scheme and no path");
  auto [host_text, port_text] = split_host_port(text);
  if (!port_text)
    return wrong("the port is missing");
  egress_rule rule;
  if (host_text.starts_with("*.")) {
    rule.subdomains = true;
    host_text.remove_prefix(2);
  }
  if (host_text.find('*') != std::string_view::npos)
    return wrong("a '*' may stand for the port or, as '*.', at the beginning of a name");
  auto host = parse_host(host_text);
  if (!host)
    return fail(host.error());
  if (rule.subdomains && host->is_address)
    return wrong("an address has no subdomains");
  if (!host->is_address && looks_like_address(host->text))
    return wrong("an IPv4 address is written as four decimal numbers");
  rule.host = *std::move(host);
  if (*port_text == "*")
    return rule;
  auto port = parse_port(*port_text);
  if (!port)
    return wrong("the port must be '*' or a number from 1 to 65535");
  rule.port = *port;
  return rule;
}

}  // namespace

bool egress_policy::allows(const host_port& to) const noexcept {
  return std::ranges::any_of(rules, [&](const egress_rule& rule) { return matches(rule, to); });
}

result<egress_policy> parse_egress_policy(const std::vector<std::string>& rules) {
  egress_policy policy;
  for (const auto& text : rules) {
    auto rule = parse_rule(text);
    if (!rule)
      return fail(errc::invalid_argument,
                  "the network rule '" + text + "' is not usable: " + rule.error().detail
                    + "; write example.org:443, *.example.org:443, example.org:*, 10.1.2.3:8080 or "
                      "[::1]:80");
    policy.rules.push_back(*std::move(rule));
  }
  return policy;
}

std::string to_string(const egress_rule& rule) {
  return (rule.subdomains ? "*." : "") + to_string(rule.host) + ":"
         + (rule.port == 0 ? "*" : std::to_string(rule.port));
}

}  // namespace troupe

#pragma once
// Where a sandbox may connect to: a list of hosts and ports. What is not listed is refused.

#include "runtime/core/error.hpp"
#include "runtime/net/host_port.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// One line of an allow list.
struct egress_rule {
  host_name host;
  bool subdomains = false;  ///< "*.host": one or more labels before it, not the host itself
  std::uint16_t port = 0;   ///< 0: any

  bool operator==(const egress_rule&) const = default;
};

/// Value. The default refuses all.
struct egress_policy {
  std::vector<egress_rule> rules;
  std::uint64_t max_bytes =
    0;  ///< of all connections of one proxy, both ways together; 0: no bound

  bool operator==(const egress_policy&) const = default;

  /// True when a rule names this host, as it is written, with this port. A name's addresses need
  /// a check of their own.
  [[nodiscard]] bool allows(const host_port& to) const noexcept;
};

/// Rules: "host:port", "*.host:port", "10.1.2.3:port", "[::1]:port"; "*" as the port for any.
/// Errors  invalid_argument: the first bad rule, what is wrong with it, and the accepted forms.
[[nodiscard]] result<egress_policy> parse_egress_policy(const std::vector<std::string>& rules);

/// As the rule is written in a list.
[[nodiscard]] std::string to_string(const egress_rule& rule);

}  // namespace troupe

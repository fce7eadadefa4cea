#pragma once
// A kind of sandbox: what its root holds, what is loaded in it, where it may connect to, and which
// layers must hold it. The limits of a run's own sandbox are in its spec.

#include "runtime/net/egress_policy.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A directory or file of the host, seen read-only inside.
struct profile_mount {
  std::string from;  ///< absolute, on the host
  std::string to;    ///< absolute, inside

  bool operator==(const profile_mount&) const = default;
};

/// What not every machine gives. The rest (namespaces, seccomp, no capabilities) every sandbox has.
enum class isolation_layer {
  cgroups,        ///< memory, processes and CPU of all processes together
  host_uids,      ///< host user ids of its own: needs root
  landlock,       ///< a second list of what may be written
  proc,           ///< a /proc of its own
  nesting_limit,  ///< no user namespaces inside
};

/// "cgroups", "host_uids", "landlock", "proc", "nesting_limit".
[[nodiscard]] std::string_view to_string(isolation_layer layer) noexcept;
[[nodiscard]] std::optional<isolation_layer> isolation_layer_from(std::string_view name) noexcept;

struct sandbox_profile {
  std::string name = "default";
  std::string root;                   ///< a directory to be the root; empty: of the host's parts
  std::string python;                 ///< the root's interpreter; empty: the one built for
  std::vector<std::string> programs;  ///< of the host, by name, beyond the usual few
  std::vector<profile_mount> mounts;
  std::vector<std::string> preload = usual_modules();  ///< imported ahead; must be there
  std::vector<std::string> preload_if_present;
  std::size_t ready = 0;                 ///< made ahead: about 2 MB and four descriptors each
  std::optional<egress_policy> network;  ///< nothing: no network at all
  std::vector<isolation_layer> required;

  /// Of the standard library, what snippets use most.
  [[nodiscard]] static std::vector<std::string> usual_modules();
};

}  // namespace troupe

#pragma once
// A sandbox's only way to a network: a socket in its own namespace, on which the runtime listens.

#include "executors/unique_fd.hpp"

namespace troupe::jail {

/// Brings the loopback interface of the calling process's network namespace up and listens at
/// proxy_port. Needs CAP_NET_ADMIN there. Throws setup_error.
[[nodiscard]] unique_fd listen_for_proxy();

}  // namespace troupe::jail

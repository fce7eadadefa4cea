#pragma once
// What the zygote says first, on its socket: that it is ready, or why it cannot be.

#include "executors/jail/namespaces.hpp"
#include "executors/jail/sys.hpp"

#include <string>

namespace troupe::jail {

/// Ready to take requests. Throws setup_error: nobody listens.
void send_ready(const std::string& python, privilege mode);

/// A step of the set-up failed.
void send_failure(const setup_error& e);

}  // namespace troupe::jail

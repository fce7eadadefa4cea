#pragma once
// How a run looks while it goes on: thoughts, code, output, observations.

#include "runtime/agent/live.hpp"

#include <string>

namespace troupe::cli {

/// One event as text for a terminal, with or without colour; empty for what is not shown. Control
/// characters of untrusted text are taken out.
[[nodiscard]] std::string show_event(const run_event& e, bool colour);

}  // namespace troupe::cli

#pragma once
// What a model call costs the client: CPU, memory, and the time until it leaves.

#include "runtime/core/error.hpp"

#include <string>

namespace troupe {

/// Takes about half a minute. Forks: only this thread may be running. Lines as bench::run gives
/// them.
[[nodiscard]] result<std::string> bench_models();

}  // namespace troupe

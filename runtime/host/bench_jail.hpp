#pragma once
// What a sandbox costs: to start, to use, to hold, to go back, to end.

#include "runtime/core/error.hpp"

#include <string>

namespace troupe {

/// Takes about a minute. Lines as bench::run gives them.
[[nodiscard]] result<std::string> bench_jail();

}  // namespace troupe

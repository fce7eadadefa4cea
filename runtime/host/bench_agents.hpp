#pragma once
// What agents cost while they wait, and the loop's own share of a turn.

#include "runtime/core/error.hpp"

#include <string>

namespace troupe {

/// CPU of a turn of the loop alone at turn 10, at turn 100, and at turn 100 after 200 KB; memory of
/// 100 000 runs that are all alive at once, and whether all of them finish.
[[nodiscard]] result<std::string> bench_agents();

}  // namespace troupe

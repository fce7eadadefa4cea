#pragma once
// What other ways to run Python take on this machine, and the least that an answer from a process
// takes.

#include <string>

namespace troupe {

/// Takes some seconds. Lines as bench::run gives them; what is not installed is said to be missing.
[[nodiscard]] std::string bench_beside();

}  // namespace troupe

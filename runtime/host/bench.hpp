#pragma once
// What troupe itself costs: the loop, the wire, the jail, the journal. CPU time first.

#include "runtime/core/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct bench {
  std::string_view name;
  std::string_view help;
  result<std::string> (*run)();  ///< lines of "what  figure  (target)"; takes seconds
};

[[nodiscard]] const std::vector<bench>& benches();

/// The bench of that name, or null.
[[nodiscard]] const bench* find_bench(std::string_view name);

/// Machine, load and commit, so that a figure can be placed.
[[nodiscard]] std::string bench_heading();

}  // namespace troupe

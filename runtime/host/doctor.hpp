#pragma once
// What works on this machine, and why not.

#include "runtime/core/json.hpp"

#include <string>
#include <vector>

namespace troupe {

struct finding {
  enum class state { works, weaker, missing };
  std::string what;
  state how = state::works;
  std::string detail;   ///< what was seen; for the other two also the mend
  bool needed = false;  ///< troupe does not work without it
};

/// Looks at the executors (by opening a sandbox of each and running 1 + 1 in it), limits, disk,
/// keys. Takes less than a second or two; starts and ends what it needs.
[[nodiscard]] std::vector<finding> examine_machine();

/// One line per finding.
[[nodiscard]] std::string show(const std::vector<finding>& findings);
[[nodiscard]] json to_json(const std::vector<finding>& findings);
[[nodiscard]] bool all_needed_work(const std::vector<finding>& findings);

}  // namespace troupe

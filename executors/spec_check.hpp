#pragma once
// What every backend demands of a sandbox_spec.

#include "executors/executor.hpp"

namespace troupe {

/// Errors  invalid_argument: a limit out of range, a file path that could leave /work, files larger
/// than the work directory, a tool without a name, an unknown profile; the detail names it.
[[nodiscard]] result<void> check_spec(const sandbox_spec& spec);

}  // namespace troupe

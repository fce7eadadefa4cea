#pragma once
// What code wanted to import and could not: the model sees the error, the user this hint.

#include "runtime/agent/snippet.hpp"

namespace troupe {

/// Logs a warning with the mend when the error is a refused import; once for each module, and for
/// the first 16 modules of the process. Thread-safe.
void hint_at_imports(const snippet_error& e);

}  // namespace troupe

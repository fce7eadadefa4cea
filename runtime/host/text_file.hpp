#pragma once

#include "runtime/core/error.hpp"

#include <string>

namespace troupe {

/// All of it. `what` says in an error what it is to be: "the prompt file".
/// Errors  read_whole_file's, after `what`.
[[nodiscard]] result<std::string> read_text(const std::string& path, const std::string& what);

}  // namespace troupe

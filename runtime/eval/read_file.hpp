#pragma once
// A whole file as bytes, with an error a user understands.

#include "runtime/core/error.hpp"

#include <cstddef>
#include <string>

namespace troupe {

/// Blocking. Pipes are read to their end.
/// Errors  not_found, denied, invalid_argument (a folder, or more than `max_bytes`), unavailable.
[[nodiscard]] result<std::string> read_whole_file(const std::string& path, std::size_t max_bytes);

}  // namespace troupe

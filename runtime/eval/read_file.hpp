#pragma once
// A whole file as bytes, with an error a user understands.

#include "runtime/core/error.hpp"

#include <cstddef>
#include <string>

namespace troupe {

/// Whether anything but a plain file will do: a shell's `<(...)` is a pipe.
enum class pipes { read_to_their_end, refused };

/// Blocking.
/// Errors  not_found, denied, invalid_argument (a folder, a pipe that is refused, or more than
/// `max_bytes`), unavailable.
[[nodiscard]] result<std::string> read_whole_file(const std::string& path, std::size_t max_bytes,
                                                  pipes take);

}  // namespace troupe

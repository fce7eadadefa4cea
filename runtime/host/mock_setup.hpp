#pragma once
// From options to a mock server.

#include "config/options.hpp"
#include "runtime/host/mock_server.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Reads the script (an empty path: a script without contents, whose replies say so), lays the
/// options over it and begins to listen. Blocks.
/// Errors  not_found, denied, corrupt, invalid_argument (script or options); unavailable (address).
[[nodiscard]] result<std::unique_ptr<mock_server>> start_mock(const settings& options,
                                                              const std::string& script_path);

}  // namespace troupe

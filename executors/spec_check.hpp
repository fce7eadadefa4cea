#pragma once
// What every backend demands of a sandbox_spec, and of what its sandboxes are asked to do.

#include "executors/executor.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// `profiles`: the names that the backend knows.
/// Errors  invalid_argument: a limit out of range, a file path that could leave /work, files larger
/// than the work directory, a tool without a name, an unknown profile; the detail names it.
[[nodiscard]] result<void> check_spec(const sandbox_spec& spec,
                                      const std::vector<std::string>& profiles);

/// Errors  invalid_argument: a path that could leave /work.
[[nodiscard]] result<void> check_path(std::string_view path);

/// Errors  invalid_argument: as check_path; more than work_bytes.
[[nodiscard]] result<void> check_file(const sandbox_file& file, const sandbox_limits& limits);

/// Errors  invalid_argument: no program, a NUL, text that is not UTF-8, more arguments than a
/// program can have, more input than work_bytes, a directory that could be outside /work.
[[nodiscard]] result<void> check_command(const shell_command& command,
                                         const sandbox_limits& limits);

}  // namespace troupe

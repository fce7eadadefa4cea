#pragma once
// The worker's Python on its way into an interpreter that somebody else built.

#include "executors/unique_fd.hpp"
#include "runtime/core/error.hpp"

#include <string>
#include <vector>

namespace troupe::process {

/// All modules of the worker in one sealed memory file: no other program can change it, and nothing
/// of ours lies on a disk. One file serves all workers.
/// Errors  unavailable: no memory or descriptor.
[[nodiscard]] result<unique_fd> make_worker_image();

/// The command of a worker that reads its image from source_fd. `python` is a path.
/// Flags  -s: no packages of the user's home; -B: no bytecode files; site-packages of `python` are
///        there, for snippets that import them. Variables like PYTHONPATH are not set.
[[nodiscard]] std::vector<std::string> worker_command(const std::string& python,
                                                      const std::string& work_directory,
                                                      std::size_t frame_bytes);

}  // namespace troupe::process

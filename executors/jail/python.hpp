#pragma once
// CPython inside the zygote: started once, frozen, run in each worker.

#include <string>
#include <vector>

namespace troupe::jail {

/// Starts the interpreter, imports `modules` and the worker's own, and freezes the heap.
/// Throws setup_error: a module does not import.
void start_python(const std::vector<std::string>& modules);

/// "3.11.2".
std::string python_version();

/// In a fork of the zygote: serves the host until it closes the socket. Returns the exit status.
int run_worker(unsigned frame_bytes);

}  // namespace troupe::jail

#pragma once
// CPython inside the zygote: loaded once, frozen, run in each worker.

#include "executors/jail/namespaces.hpp"

#include <string>
#include <vector>

namespace troupe::jail {

/// Imports `modules` (a name with may_be_missing only when it is there) and the worker's own, and
/// freezes the heap.
/// Throws setup_error: a module does not import.
void load_worker(const std::vector<std::string>& modules);

/// "3.11.2".
std::string python_version();

/// In a fork of the zygote: serves the host until it closes the socket. Returns the exit status.
int run_worker(unsigned frame_bytes);

// What the Python module runs, in this order. Both return an exit status.
// ---------------------------------------------------------------------------------

/// load_worker; 0 when it is done, otherwise the runtime has been told why not.
int prepare_zygote(const std::vector<std::string>& modules);

/// Serves the runtime until it has gone.
int run_zygote(privilege mode);

}  // namespace troupe::jail

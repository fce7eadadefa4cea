#pragma once
// The zygote's memory, once it is ready, as a file of large pages that it and its forks have mapped
// privately. A fork of anonymous memory copies an entry for each page there is, and its end takes
// all of them away again; of a file's pages a sandbox has only those that it touches.

#include "executors/jail/memory_map.hpp"

namespace troupe::jail {

/// Before modules are imported: what Python makes from then on lies in one region, where it lets us
/// choose.
void gather_objects();

/// Puts the objects' region, the heap and the programs' code and data into a file in `store`, a
/// directory that nobody else can reach, and takes its name away: what is in it can be changed by
/// nobody from then on. Without a store all stays as it is.
/// Throws setup_error.
void freeze_memory(int store);

/// True for a mapping of that file: all forks have it, with the same bytes.
[[nodiscard]] bool is_frozen(const mapping& m) noexcept;

}  // namespace troupe::jail

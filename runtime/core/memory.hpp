#pragma once
// The machine's memory.

#include <cstdint>

namespace troupe {

/// Bytes that can be had without swapping, as the kernel estimates; 0 when it does not say.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace troupe

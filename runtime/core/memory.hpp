#pragma once
// The machine's memory.

#include <cstdint>

namespace troupe {

/// Bytes that can be had without swapping, as the kernel estimates; 0 when it does not say.
[[nodiscard]] std::uint64_t available_memory();

/// Below this the machine's memory is for the sandboxes that are in use: no more are made.
inline constexpr std::uint64_t spare_memory_bytes = 512u << 20;

}  // namespace troupe

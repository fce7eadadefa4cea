#pragma once
// How much of what was written has reached the other side.

#include <cstdint>
#include <optional>

namespace troupe {

/// Bytes that the peer's system has acknowledged since the connection began; nothing when the
/// socket is no TCP socket. Linux; also after the connection has ended.
[[nodiscard]] std::optional<std::uint64_t> acknowledged_bytes(int fd) noexcept;

}  // namespace troupe

#pragma once
// How far a call has come, for messages about time.

#include <cstdint>
#include <string_view>

namespace troupe {

enum class http_phase : std::uint8_t {
  queued,
  resolving,
  connecting,
  asking_proxy,
  handshaking,
  sending,
  waiting,
  receiving
};

/// "while connecting" and the like.
[[nodiscard]] std::string_view to_string(http_phase phase) noexcept;

}  // namespace troupe

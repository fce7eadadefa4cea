#pragma once
// What is written down of a connection that code in a sandbox made, or tried to make.

#include "runtime/core/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class egress_verdict : std::uint8_t {
  allowed,  ///< a connection was made
  refused,  ///< by the policy, or because the request was not understood; nothing was connected to
  failed    ///< allowed, but there was no such host, no connection, or no time left
};

[[nodiscard]] std::string_view to_string(egress_verdict verdict) noexcept;

/// One connection that came from inside.
struct egress_record {
  std::string host;  ///< as in the policy: lower case; "" when the request was not understood
  std::uint16_t port = 0;
  std::string address;  ///< connected to, or the one that was refused; "" when it came to none
  egress_verdict verdict = egress_verdict::refused;
  std::string reason;          ///< one line: why not, or how it ended
  std::uint64_t bytes_up = 0;  ///< from inside to the server, rewritten heads included
  std::uint64_t bytes_down = 0;
  micros duration{0};  ///< from its acceptance

  bool operator==(const egress_record&) const = default;
};

}  // namespace troupe

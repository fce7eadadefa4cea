#pragma once
// The one digest: names data sets and requests.

#include <string>
#include <string_view>

namespace troupe {

/// SHA-256, lower-case hex. Source  FIPS 180-4.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace troupe

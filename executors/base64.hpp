#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Standard base64 with padding (RFC 4648, section 4).
[[nodiscard]] std::string to_base64(std::string_view bytes);

}  // namespace troupe

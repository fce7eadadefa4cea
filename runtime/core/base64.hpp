#pragma once
// Standard base64 (RFC 4648, section 4): bytes in frames and data URIs.

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// With padding.
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// The bytes of padded or unpadded base64; nothing for any other character or length.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace troupe

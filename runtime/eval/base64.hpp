#pragma once
// Base64 as it stands in data URIs.

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The bytes of padded or unpadded standard base64; nothing for any other character or length.
/// Source  RFC 4648, section 4.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

/// The bytes of "data:<type>;base64,<data>"; nothing for a text of another form.
/// Source  RFC 2397.
[[nodiscard]] bool is_data_uri(std::string_view text);
[[nodiscard]] std::optional<std::string> decode_data_uri(std::string_view text);

}  // namespace troupe

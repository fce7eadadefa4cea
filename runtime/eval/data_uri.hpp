#pragma once
// Bytes that stand in a text as "data:<type>;base64,<data>" (RFC 2397).

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// True for a text that says it is base64 data; its data may still be wrong.
[[nodiscard]] bool is_data_uri(std::string_view text);

/// The bytes of a data URI; nothing for a text of another form.
[[nodiscard]] std::optional<std::string> decode_data_uri(std::string_view text);

}  // namespace troupe

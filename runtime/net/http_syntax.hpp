#pragma once
// What HTTP's own words may be made of. RFC 9110, section 5.6.

#include <string>
#include <string_view>

namespace troupe {

/// True for a method or a header's name.
[[nodiscard]] bool is_token(std::string_view name) noexcept;

/// True when `text` has a control character other than a tab.
[[nodiscard]] bool has_control(std::string_view text) noexcept;

/// Equal but for the case of ASCII letters.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b) noexcept;

/// ASCII letters in lower case, all else as it was.
[[nodiscard]] std::string to_lower(std::string_view text);

}  // namespace troupe

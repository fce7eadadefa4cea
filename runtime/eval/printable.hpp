#pragma once
// Text that others wrote, made safe for a terminal.

#include <string>
#include <string_view>

namespace troupe {

/// The text without what could command a terminal or disguise itself: escape sequences (CSI, OSC,
/// DCS and the short ones) are dropped whole; control characters other than newline and tab (C0,
/// DEL, C1) and bidirectional overrides are dropped; CR LF becomes a newline; bytes that are not
/// UTF-8 become U+FFFD.
/// Source  ECMA-48, sections 5.3 to 5.6; Unicode Technical Report 36.
[[nodiscard]] std::string printable(std::string_view text);

/// The same on one line: newlines and tabs become spaces, cut to `max_bytes` with "..." when
/// longer.
[[nodiscard]] std::string printable_line(std::string_view text, std::size_t max_bytes = 200);

}  // namespace troupe

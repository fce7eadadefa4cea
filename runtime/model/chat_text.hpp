#pragma once
// Foreign text inside our one-line messages.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// `text` as one printable UTF-8 line: white space and control characters become single spaces;
/// cut to about `max_bytes`, with "..." when something was cut.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t max_bytes);

}  // namespace troupe

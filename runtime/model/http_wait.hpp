#pragma once
// How long a server asks us to wait, from the headers of its answer.

#include "runtime/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Seconds since the Unix epoch of an HTTP date, "Sun, 06 Nov 1994 08:49:37 GMT"; nothing for
/// other text. Source  RFC 9110, section 5.6.7 (IMF-fixdate).
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);

/// retry-after-ms, else retry-after as seconds or as a date; a date counts from the answer's own
/// `date` header, or from the wall clock when it has none. Names are lower case.
/// Units   milliseconds in [0, 30 days].
/// Source  RFC 9110, section 10.2.3; retry-after-ms as OpenAI sends it.
[[nodiscard]] std::optional<millis>
wait_asked(const std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace troupe

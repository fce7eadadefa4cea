#pragma once
// What a server says about its limits, in the headers of any answer.

#include "runtime/policy/rate_report.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// x-ratelimit-{limit,remaining,reset}-{requests,tokens}, and
/// anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}; what
/// cannot be read is left out. Names are lower case. A reset that is a date counts from the
/// answer's own `date` header, or from the wall clock when it has none.
/// Source  OpenAI, "Rate limits in headers"; Anthropic, "Rate limits: response headers".
[[nodiscard]] rate_report
rates_stated(const std::vector<std::pair<std::string, std::string>>& headers);

/// "6m0s", "1h2m3.5s", "20ms"; a bare number is seconds. Nothing for other text, or one beyond 30
/// days.
[[nodiscard]] std::optional<millis> parse_span(std::string_view text);

/// Seconds since the Unix epoch, a fraction rounded up. Source  RFC 3339, section 5.6.
[[nodiscard]] std::optional<std::int64_t> parse_rfc3339(std::string_view text);

}  // namespace troupe

#pragma once
// From the words that somebody wrote to a value that fits its row of the table.

#include "config/options.hpp"

namespace troupe {

/// Errors  invalid_argument: "'abc' is not <accepted form>", without saying where it stands.
[[nodiscard]] result<option_value> parse_option(const option_spec& spec,
                                                const std::vector<std::string>& words);

/// "90", "1.5m", "250ms", "2h": a bare number is seconds. Whole milliseconds, rounded.
[[nodiscard]] std::optional<millis> parse_duration(std::string_view text);

/// "512MiB", "1GB", "1024": powers of 1024 with an i, of 1000 without.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace troupe

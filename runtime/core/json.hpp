#pragma once
// JSON at our edges: one bounded parser for untrusted text, one writer that never throws.

#include "runtime/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

using json = nlohmann::json;
using ordered_json = nlohmann::ordered_json;

struct json_limits {
  std::size_t max_bytes = 16u << 20;
  unsigned max_depth = 64;
};

/// Parses text that we did not write.
/// Errors  corrupt: not JSON, too long or too deep; the detail gives line and column (from 1).
[[nodiscard]] result<json> parse_json(std::string_view text, const json_limits& limits = {});

/// Compact JSON text; bytes that are not UTF-8 become U+FFFD. Never throws on content.
[[nodiscard]] std::string dump_json(const json& value);

/// Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// A member's string, or `fallback` when it is absent or of another type.
[[nodiscard]] std::string string_or(const json& object, std::string_view key,
                                    std::string_view fallback = {});

}  // namespace troupe

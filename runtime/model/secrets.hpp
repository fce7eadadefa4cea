#pragma once
// Keys and tokens out of what is written to files that people pass on.

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// `text` with every occurrence of a secret as "[removed]": the values in `known` of at least 8
/// bytes, and what looks like a key of a well-known service: a prefix such as "sk-" or "hf_" with
/// at least 16 characters of a key behind it, where no word runs on into it.
[[nodiscard]] std::string without_secrets(std::string text, const std::vector<std::string>& known);

}  // namespace troupe

#pragma once
// Where two JSON values differ, in words.

#include "runtime/core/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One line each for at most `most` places where `after` is not `before`, in order, for example
/// `messages[2].content: "…the year 1901" is "…the year 1902"`. Long values are shown around the
/// first byte that differs.
[[nodiscard]] std::vector<std::string> differences(const json& before, const json& after,
                                                   std::size_t most);

}  // namespace troupe

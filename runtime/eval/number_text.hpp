#pragma once
// Numbers as people and models write them.

#include <optional>
#include <string_view>

namespace troupe {

struct written_number {
  double value = 0;
  bool percent = false;

  bool operator==(const written_number&) const = default;
};

/// The number that the text is, or the last one in it; see scorer.hpp for what is understood.
[[nodiscard]] std::optional<written_number> read_number(std::string_view text);

}  // namespace troupe

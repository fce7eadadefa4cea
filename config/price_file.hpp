#pragma once
// The price list as a file: config/prices/prices.yaml is shipped inside the program, a user's own
// lies where the user says.

#include "runtime/core/error.hpp"
#include "runtime/policy/prices.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Reads a price list's text; `where` is for messages.
/// Errors  invalid_argument: file and line, what was expected, the nearest key; a model that stands
///         twice.
[[nodiscard]] result<price_list> parse_prices(std::string_view text, const std::string& where);

/// The list in that file; the shipped one when `path` is empty.
/// Errors  not_found, denied; parse_prices's.
[[nodiscard]] result<price_list> read_prices(const std::string& path);

/// What a limit on money needs: the model's price.
/// Errors  invalid_argument: it has none; the mend, and the nearest name that has one.
[[nodiscard]] result<price> price_of(const price_list& list, const std::string& model,
                                     const std::string& path);

}  // namespace troupe

#pragma once
// Units of measurement and their exact factors.

#include "runtime/core/error.hpp"

#include <string_view>

namespace troupe {

/// Converts a value between two units of one dimension. Names and symbols are as in the table
/// (units.cpp); names also in upper case and in the plural.
/// Units   the result is rounded to 15 significant digits: 1 ft is 12 in, not 12.000000000000002.
/// Errors  invalid_argument: an unknown unit (nearest named), two dimensions, an infinite result.
/// Source  NIST Special Publication 811 (2008), appendix B; IEC 80000-13 for data.
[[nodiscard]] result<double> convert_units(double value, std::string_view from,
                                           std::string_view to);

}  // namespace troupe

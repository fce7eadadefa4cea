#pragma once
// The rows of the option table that belong to `troupe mock` alone.

#include "config/options.hpp"

#include <vector>

namespace troupe {

[[nodiscard]] std::vector<option_spec> mock_rows();

}  // namespace troupe

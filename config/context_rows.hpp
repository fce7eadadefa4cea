#pragma once
// The rows of the option table about what an agent's model reads and answers: prompts, plans, the
// form of replies and answers, images, and the context window.

#include "config/options.hpp"

#include <vector>

namespace troupe {

[[nodiscard]] std::vector<option_spec> context_rows();

}  // namespace troupe

#pragma once
// The keys of an agent file, and which options they stand for.

#include "config/options.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// All keys of the file's top level, in the order of the template.
[[nodiscard]] const std::vector<std::string_view>& agent_keys();
[[nodiscard]] bool is_agent_key(std::string_view key);

/// The keys under `limits`.
[[nodiscard]] const std::vector<std::string_view>& agent_limits();
[[nodiscard]] bool is_agent_limit(std::string_view key);

/// The option that a key of the top level stands for, or null: `kind` is the option `agent`, what
/// is under `limits` none.
[[nodiscard]] const option_spec* agent_option(std::string_view key);

}  // namespace troupe

#pragma once
// Finds typos in a Jinja template before it is rendered: every name and attribute must be one that
// exists, also in branches that this rendering would not take.

#include "runtime/core/error.hpp"

#include <set>
#include <string>
#include <string_view>

namespace troupe {

/// What a template may refer to.
struct template_names {
  std::set<std::string, std::less<>> variables;  ///< given by us
  std::set<std::string, std::less<>> functions;  ///< the engine's functions and filters
};

struct checked_template {
  std::string source;  ///< with `x.values()` written as `(x|values)`, which the engine can do
  std::set<std::string, std::less<>> used;     ///< variables that occur
  std::set<std::string, std::less<>> guarded;  ///< names that may be undefined: tested by `is
                                               ///< defined` or given a default in the template
};

/// Errors  invalid_argument: "line 3: unknown name 'tsk' (did you mean 'task'?)".
[[nodiscard]] result<checked_template> check_template(std::string_view source,
                                                      const template_names& names);

}  // namespace troupe

#pragma once
// Where the programs lie that are installed with ours.

#include <string>

namespace troupe {

/// `given`, or else the path of `name` beside the running program or in ../libexec/troupe from it;
/// then the same from the library that a program has us in.
[[nodiscard]] std::string find_helper(const std::string& given, const std::string& name);

}  // namespace troupe

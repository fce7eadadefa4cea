#pragma once
// Sandbox profiles as files: config/profiles/*.yaml are shipped inside the program, a user's own
// lie where the user says.

#include "config/options.hpp"
#include "executors/executor.hpp"
#include "executors/sandbox_profile.hpp"

namespace troupe {

/// All that a profile says. What it does not say is as in the profile `default`.
struct profile_settings {
  std::string description;
  sandbox_profile profile;
  sandbox_limits limits;
  bool checkpoints = true;
  std::vector<std::string> imports;  ///< that snippets may import; empty: all

  /// A spec with no tools and no files.
  [[nodiscard]] sandbox_spec spec() const;
};

/// "data", "default", "shell", "tight".
[[nodiscard]] std::vector<std::string_view> shipped_profiles();

/// Reads a profile's text; `name` becomes its name, `where` is for messages.
/// Errors  invalid_argument: file and line, what was expected, the nearest key.
[[nodiscard]] result<profile_settings> parse_profile(std::string_view text, const std::string& name,
                                                     const std::string& where);

/// A shipped profile by its name, or a file by its path: with a '/' in it, or ending in ".yaml".
/// Errors  not_found: no such name (the nearest named) or file; denied; parse_profile's.
[[nodiscard]] result<profile_settings> find_profile(const std::string& name_or_path);

}  // namespace troupe

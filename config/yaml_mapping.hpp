#pragma once
// YAML files that are one mapping of names to values, each name a row of some table.

#include "config/options.hpp"

#include <functional>

namespace troupe {

/// What is special to one kind of file.
struct mapping_kind {
  std::function<const option_spec*(const std::string& key)> find;
  std::vector<std::string_view> names;  ///< for "did you mean"
  /// Why a key that is not found does not belong there; empty: it is only unknown.
  std::function<std::string(const std::string& key)> refusal = {};
};

/// Reads the text (`name` is for messages). A null counts as not written.
/// Errors  invalid_argument: file and line, what was expected, the nearest key, a key that stands
///         twice.
[[nodiscard]] result<std::vector<option_input>>
parse_mapping(std::string_view text, const std::string& name, const mapping_kind& kind);

/// A regular file of at most 1 MiB.
/// Errors  not_found, denied, invalid_argument.
[[nodiscard]] result<std::string> read_small_file(const std::string& path);

}  // namespace troupe

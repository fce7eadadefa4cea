#pragma once
// An agent as a file: what it is, what it may use and when it stops. One YAML mapping.

#include "config/options.hpp"
#include "runtime/agent/prompt.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// An agent that the agent of a file may call.
struct agent_child {
  std::string path;   ///< of its file: relative to the folder of the file that names it
  std::string where;  ///< "team.yaml, line 9, column 5"
  std::shared_ptr<const agent_file> agent;
};

struct agent_file {
  std::string path;         ///< as it was given
  std::string name;         ///< a Python identifier
  std::string description;  ///< for an agent that may call it
  /// What the file says of the options of `troupe run`, as resolve() takes it.
  std::vector<option_input> options;
  given_prompts prompts;              ///< inline
  std::vector<agent_child> children;  ///< read and checked, in their order
};

/// Reads the file at `path` and those of its children. The keys are: name, description, kind, the
/// options of the model, the agent and the sandbox by their names, prompts (a mapping, or a file),
/// limits (a mapping of max_steps, run_time, ...) and children (files). Files that it names are
/// beside it. Values are checked by resolve().
/// Errors  not_found, denied: a file cannot be read; invalid_argument, with file, line, column and
///         key: what is no mapping, stands twice, or is unknown (the nearest key); two children of
///         one name; a file that contains itself ("cyclic team: a.yaml -> b.yaml -> a.yaml").
[[nodiscard]] result<std::shared_ptr<const agent_file>> read_agent_file(const std::string& path);

/// The text of a new agent file: every key with its meaning and its default, for `troupe init`.
[[nodiscard]] std::string agent_file_template(const std::string& name);

}  // namespace troupe

#pragma once
// Agents that smolagents has saved, as agent files: as far as they are data and no Python.

#include "runtime/core/error.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// What is to be written, and what cannot be.
struct imported_agent {
  std::string main;  ///< the name of the agent file among `files`
  std::vector<std::pair<std::string, std::string>> files{};  ///< name beside each other, text
  std::vector<std::string> left_out{};                       ///< one line each: what, and why
};

/// Reads a folder that smolagents' `save` wrote: agent.json, prompts.yaml and managed_agents/.
/// Errors  not_found, denied: no agent.json; invalid_argument, corrupt: it is none.
/// Source  smolagents 1.2x, MultiStepAgent.save and to_dict.
[[nodiscard]] result<imported_agent> import_smolagents(const std::string& folder);

}  // namespace troupe

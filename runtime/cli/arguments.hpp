#pragma once
// The command line of `run` and `eval`: built from the option table, resolved with file and
// environment.

#include "config/options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

struct arguments {
  settings options;
  std::vector<std::string> rest;  ///< the words that are no options: a task, a dataset
  bool explain = false;
};

/// Either the arguments, or the exit code when there is nothing more to do (--help, an error that
/// has been printed).
struct parsed_arguments {
  std::optional<arguments> ok;
  int exit_code = 0;
};

/// Reads the words of a command. `rest_name` and `rest_help` describe its one positional argument.
[[nodiscard]] parsed_arguments parse_arguments(command which, const std::string& name,
                                               const std::string& help,
                                               const std::string& rest_name,
                                               const std::string& rest_help,
                                               const std::vector<std::string>& words);

}  // namespace troupe::cli

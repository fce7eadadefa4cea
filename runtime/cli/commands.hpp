#pragma once
// The commands of the program. Each takes its words and answers with an exit code.

#include "runtime/core/error.hpp"

#include <string>
#include <vector>

namespace troupe::cli {

/// What a shell learns. Source: README.md, "Exit codes".
enum exit_code : int {
  done = 0,        ///< what was asked for is done
  failed = 1,      ///< something outside failed: a file, the journal, the machine
  usage = 2,       ///< the words, the configuration or the dataset are wrong; nothing has run
  incomplete = 3,  ///< stopped or cancelled; the same command goes on where it stopped
  no_answer = 4    ///< run: the agent ended without an answer
};

using words = std::vector<std::string>;

[[nodiscard]] int run_command(const words& arguments);
[[nodiscard]] int eval_command(const words& arguments);
[[nodiscard]] int report_command(const words& arguments);
[[nodiscard]] int trace_command(const words& arguments);
[[nodiscard]] int doctor_command(const words& arguments);
[[nodiscard]] int bench_command(const words& arguments);
[[nodiscard]] int mock_command(const words& arguments);
[[nodiscard]] int init_command(const words& arguments);

/// --help or -h is among them.
[[nodiscard]] bool wants_help(const words& arguments);

/// Of work that could not be started: `failed` for what may work at another time, else `usage`.
[[nodiscard]] exit_code code_of_start(const error& why);

/// Prints what `troupe report` prints.
int print_report(const std::string& journal, bool as_json);

/// Prints "troupe: <line>" to stderr and gives the code back.
int complain(exit_code code, const std::string& line);

}  // namespace troupe::cli

#pragma once
// A program run inside a sandbox, beside the interpreter. Plain values, like a snippet's.

#include "runtime/agent/snippet.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct shell_command {
  std::vector<std::string> argv{};   ///< the program, found by PATH, and its arguments
  std::string stdin_text{};          ///< what it reads
  std::string cwd{};                 ///< relative to /work; empty: /work itself
  time_point soft_deadline = never;  ///< it is killed with its process group
  time_point hard_deadline = never;  ///< the sandbox is killed
};

/// How a command ended. In all cases but `lost` the sandbox and its variables live on.
enum class shell_end : std::uint8_t {
  exited,        ///< by itself, with `status`
  signalled,     ///< by a signal, whose number is `status`
  soft_timeout,  ///< killed at the soft deadline, or interrupted
  output_limit,  ///< killed: more output than limits.output_bytes
  not_started,   ///< e.g. there is no such program; see `reason`
  lost           ///< the sandbox ended, as `sandbox_end` says
};

[[nodiscard]] std::string_view to_string(shell_end end) noexcept;

struct shell_outcome {
  shell_end end = shell_end::exited;
  int status = 0;
  std::string output{};            ///< stdout and stderr in order, UTF-8, at most shown_bytes
  std::size_t output_dropped = 0;  ///< bytes cut from the output
  std::string reason{};            ///< for all ends but `exited` and `signalled`: one line
  snippet_end sandbox_end = snippet_end::ok;  ///< for `lost`
  sandbox_usage usage{};
};

}  // namespace troupe

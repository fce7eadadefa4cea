#pragma once
// One piece of code for a sandbox, and how it ended. Plain values: the agent asks with them and
// decides on them, executors answer with them.

#include "runtime/core/time.hpp"
#include "runtime/core/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct snippet {
  std::string code{};
  /// True when the code is a whole reply that may be prose: if it does not parse as Python, the
  /// outcome is not_code and nothing has run.
  bool may_be_prose = false;
  time_point soft_deadline = never;  ///< KeyboardInterrupt, state kept
  time_point hard_deadline = never;  ///< the sandbox is killed
};

/// How a snippet ended. From `soft_timeout` up to `not_code` the sandbox lives on.
enum class snippet_end : std::uint8_t {
  ok,
  raised,        ///< an exception left the code; see `error`
  soft_timeout,  ///< interrupted at the soft deadline
  not_code,      ///< may_be_prose and not Python
  hard_timeout,  ///< killed at the hard deadline
  output_limit,  ///< killed: more output than limits.output_bytes
  protocol,      ///< killed: a malformed, unknown, late or oversized frame
  memory,        ///< killed: out of memory
  crashed,       ///< ended by a signal (segmentation fault, abort)
  exited,        ///< ended by itself (os._exit)
  killed         ///< closed or cancelled from outside
};

[[nodiscard]] std::string_view to_string(snippet_end end) noexcept;

struct snippet_error {
  std::string type{};       ///< exception class, e.g. "ZeroDivisionError"
  std::string message{};    ///< str(exception)
  std::uint32_t line = 0;   ///< in the snippet, from 1; 0 when unknown
  std::string traceback{};  ///< the snippet's own frames, as Python prints them
};

/// The module that the allow-list kept from the code; nothing for any other error.
[[nodiscard]] std::optional<std::string_view> refused_import(const snippet_error& e) noexcept;

struct sandbox_usage {
  micros wall{0};
  micros cpu{0};  ///< user and system
  std::uint64_t max_rss_bytes = 0;
  std::uint32_t tool_calls = 0;

  sandbox_usage& operator+=(const sandbox_usage& x);
};

struct snippet_outcome {
  snippet_end end = snippet_end::ok;
  std::optional<value> result{};  ///< the last expression's value, or the final answer
  bool is_final = false;          ///< `result` is the argument of final_answer
  std::string logs{};             ///< stdout and stderr in order, UTF-8, at most shown_bytes
  std::size_t logs_dropped = 0;   ///< bytes cut from the logs
  std::optional<snippet_error> error{};
  std::string reason{};       ///< for the ends that kill: one line for the model
  bool restored = false;      ///< the end killed the code, and its sandbox went back to before it
  std::string unprotected{};  ///< why no checkpoint was made before it, if one was asked for
  sandbox_usage usage{};
};

/// True when the end did not kill the interpreter.
[[nodiscard]] constexpr bool survives(snippet_end end) noexcept {
  return end <= snippet_end::not_code;
}

/// True when the sandbox can run another snippet.
[[nodiscard]] inline bool lives_on(const snippet_outcome& o) noexcept {
  return survives(o.end) || o.restored;
}

}  // namespace troupe

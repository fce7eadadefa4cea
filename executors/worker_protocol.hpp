#pragma once
// The frames between an executor and the worker inside a sandbox (executors/worker). Requests are
// ours; what comes back is hostile and checked here, once, for all backends.

#include "executors/executor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::worker {

// --- to the worker: whole frames
// --------------------------------------------------------------------

/// Tools, import rules and limits; before the first snippet. Answered by `done`.
[[nodiscard]] std::string init_frame(std::uint32_t id, const sandbox_spec& spec);

/// Has the worker touch what its first snippet will; answered by `done`.
[[nodiscard]] std::string warm_frame(std::uint32_t id);

/// A file in pieces, each answered by `done`; ids count up from `first_id`.
[[nodiscard]] std::vector<std::string> put_frames(std::uint32_t first_id, const sandbox_file& file);

/// The piece of a file that begins at `offset`, at most put_piece_bytes of it.
[[nodiscard]] std::string put_frame(std::uint32_t id, const sandbox_file& file, std::size_t offset);
inline constexpr std::size_t put_piece_bytes = 384u << 10;

/// Asks for the `bytes` of a file from `offset`. Fewer in the reply are the last ones.
[[nodiscard]] std::string get_frame(std::uint32_t id, const std::string& path, std::uint64_t offset,
                                    std::size_t bytes);

/// How many bytes of a file fit into one reply.
[[nodiscard]] std::size_t get_piece_bytes(const sandbox_limits& limits);

[[nodiscard]] std::string shell_frame(std::uint32_t id, const shell_command& command);

/// With `checkpoint` the worker first makes one, if it can.
[[nodiscard]] std::string run_frame(std::uint32_t id, const snippet& code, bool checkpoint);

/// Asks for `count` copies of the session, one through each pipe that init passes on.
[[nodiscard]] std::string branch_frame(std::uint32_t id, std::size_t count);

/// The worker goes on as the one whose copy comes through its pipe; that one answers.
[[nodiscard]] std::string take_frame(std::uint32_t id);

[[nodiscard]] std::string answer_frame(std::uint64_t call, const result<json>& value);

// --- from the worker
// --------------------------------------------------------------------------------

/// What runs the worker, as it says before any snippet has run.
struct interpreter {
  std::string version;  ///< "3.11.2"
  std::string path;     ///< of its program; may be empty
};

/// How a command ended.
struct command_exit {
  std::uint8_t status = 0;
  std::uint8_t signal = 0;  ///< 0: it ended by itself, with `status`
  bool killed = false;      ///< by the worker, after an interrupt
};

/// The one reply to a request.
struct done {
  std::uint32_t id = 0;
  std::string failure;                 ///< of all but run: what went wrong
  errc kind = errc::invalid_argument;  ///< of the failure
  snippet_end end = snippet_end::ok;   ///< ok, raised or not_code
  std::optional<value> result;
  bool is_final = false;
  std::optional<snippet_error> error;
  std::string unprotected;            ///< why no checkpoint was made
  std::optional<interpreter> python;  ///< of init
  std::optional<command_exit> exit;   ///< of shell
  std::optional<std::string> data;    ///< of get: bytes of the file
  std::uint64_t file_bytes = 0;       ///< of get: how many it has
  micros cpu{0};                      ///< of the worker's whole life, as it says
  std::uint64_t max_rss_bytes = 0;
};

/// A tool call by the running snippet.
struct call {
  std::uint32_t snippet = 0;
  std::uint64_t id = 0;
  std::string tool;
  json arguments;  ///< plain JSON
};

using message = std::variant<done, call>;

/// Errors  corrupt: not a message of this protocol.
[[nodiscard]] result<message> parse(std::string_view body);

}  // namespace troupe::worker

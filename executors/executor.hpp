#pragma once
// The executor interface: a backend opens sandboxes; a sandbox runs snippets for one run.
// Everything that comes out of a sandbox is its own statement, and may be a lie.

#include "executors/shell_command.hpp"
#include "runtime/agent/snippet.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/tool_spec.hpp"
#include "runtime/net/egress_record.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Limits of one sandbox. Bytes, counts, wall time.
struct sandbox_limits {
  millis open_timeout{10'000};  ///< creation has its own deadline
  millis restore_timeout{80};   ///< from a hard deadline to the checkpoint; else the sandbox ends
  std::uint64_t memory_bytes = 1u << 30;  ///< of each process's address space; where a control
                                          ///< group is to be had, also of all together in use
  double cpus = 0;                        ///< cores' worth of time; 0: no limit of its own
  std::uint32_t processes = 64;
  std::uint32_t open_files = 64;
  std::uint64_t file_bytes = 64u << 20;  ///< largest file
  std::uint64_t work_bytes = 64u << 20;  ///< size of /work
  std::uint64_t tmp_bytes = 16u << 20;   ///< size of /tmp
  std::size_t output_bytes = 4u << 20;   ///< per snippet; more ends the sandbox
  std::size_t shown_bytes = 64u << 10;   ///< per snippet; more is cut from the logs
  std::size_t frame_bytes = 1u << 20;    ///< largest frame from inside
  std::uint32_t tool_calls = 1'000;      ///< per snippet
  std::size_t call_bytes = 16u << 20;    ///< per snippet: of all its tool calls together

  bool operator==(const sandbox_limits&) const = default;
};

/// A file in the sandbox's work directory.
struct sandbox_file {
  std::string path;  ///< relative to /work, no "..", UTF-8
  std::string bytes;
};

struct sandbox_spec {
  std::string profile = "default";
  std::vector<tool_spec> tools;      ///< callable by name in the snippets
  std::vector<std::string> imports;  ///< allowed module names ("a.b", "a.*", "*"); empty: all
  std::vector<sandbox_file> files;
  bool checkpoints = true;  ///< go back to the state before a snippet that was killed
  bool network = false;     ///< may connect to what its profile lists
  sandbox_limits limits;
};

/// A call that code inside made of a tool or managed agent on the host.
struct code_call {
  call_id id;  ///< unique in the sandbox
  std::string tool;
  json arguments;  ///< an object by parameter name: positional ones are already named
};

/// What close verified.
struct close_report {
  bool processes_gone = false;
  bool mounts_gone = false;             ///< its own mounts, or the directory that it had instead
  bool groups_gone = true;              ///< its control groups, where it had some: removed or empty
  std::string detail;                   ///< what is left, if anything
  int exit_status = 0;                  ///< of the sandbox's first process, as wait reports it
  micros teardown{0};                   ///< from the decision to kill to verified gone
  micros cpu{0};                        ///< of all its processes, over its whole life
  std::uint64_t peak_memory_bytes = 0;  ///< of all together where a control group counted, else of
                                        ///< the largest process
  [[nodiscard]] bool clean() const noexcept { return processes_gone && mounts_gone && groups_gone; }
};

/// One live interpreter. All callbacks run on the reactor's thread. Resource: closed exactly once
/// by its owner; the destructor closes too, unreported.
class sandbox {
public:
  using done_fn = std::function<void(snippet_outcome)>;
  using closed_fn = std::function<void(close_report)>;
  using output_fn = std::function<void(std::string_view)>;  ///< raw bytes as they come
  using call_fn = std::function<void(code_call)>;
  using connection_fn = std::function<void(const egress_record&)>;
  using put_fn = std::function<void(result<void>)>;
  using got_fn = std::function<void(result<std::string>)>;
  using shell_fn = std::function<void(shell_outcome)>;
  using forked_fn = std::function<void(std::vector<result<std::shared_ptr<sandbox>>>)>;

  virtual ~sandbox() = default;

  /// Sets who hears output and who answers tool calls. Before the first run. Either may be empty:
  /// then output is only collected, and calls fail.
  virtual void listen(output_fn output, call_fn call) = 0;

  /// Sets who hears of each connection that has ended or was refused; all of them before close has
  /// reported. Before the first run. Nothing where sandboxes have no network.
  virtual void hear_connections(const connection_fn&) {}

  /// Runs one snippet. A sandbox does one thing at a time: run, put, get or shell. Thread-safe.
  /// Errors  invalid_argument (it is busy), unavailable (gone). The end comes by `done`, once.
  [[nodiscard]] virtual result<void> run(snippet code, done_fn done) = 0;

  /// Writes a file below /work, over one that is there; makes the directories above it. No path
  /// leads through a symbolic link. A failure may leave a part of the file. Thread-safe.
  /// Errors  as run; invalid_argument (the path, more than work_bytes). By `done`: denied (not a
  ///         plain file, a link), over_budget (no space), unavailable (the sandbox died, or its
  ///         worker did not answer for 30 s and was killed).
  [[nodiscard]] virtual result<void> put(sandbox_file file, put_fn done) = 0;

  /// Reads a plain file below /work, of at most `max_bytes`. What it reads of a file that code
  /// inside changes at the same time may be torn. Thread-safe.
  /// Errors  as put; not_found, over_budget (it is larger).
  [[nodiscard]] virtual result<void> get(std::string path, std::size_t max_bytes, got_fn done) = 0;

  /// Runs a program, and waits for that program alone: a child that it leaves in the background
  /// lives on, until the sandbox ends. Its output is heard like a snippet's. Thread-safe.
  /// Errors  as run; invalid_argument (no program, a NUL, text that is not UTF-8, the path).
  [[nodiscard]] virtual result<void> shell(shell_command command, shell_fn done) = 0;

  /// Branches the session: for each element of `branches` another sandbox with these limits, whose
  /// interpreter goes on as this one, with its variables, modules, open files, and the files in
  /// /work and /tmp. All begin at one moment; then none sees what another does, and random numbers
  /// differ. Profile, network, tools, rules and checkpoints are as here; child processes and timers
  /// stay behind, as in a fork. This sandbox goes on unchanged; meanwhile each branch takes one of
  /// its processes and descriptors. Thread-safe.
  /// Errors  as run; invalid_argument (none, or more than max_branches), denied (the backend does
  ///         not have the ability). For each branch by `done`, in the same order: denied (it cannot
  ///         be copied: threads, pipes, shared memory; the detail says which), over_budget (its
  ///         memory or disk is too small), timeout (its open_timeout, for all of it), unavailable
  ///         (one of the two died, or what this sandbox is made of is no longer to be had),
  ///         invalid_argument (its limits).
  [[nodiscard]] virtual result<void> fork(std::vector<sandbox_limits> branches, forked_fn done) = 0;
  static constexpr std::size_t max_branches = 64;

  /// Answers a code_call with a JSON value or an error that becomes a Python exception. Late or
  /// unknown ids are ignored. Thread-safe.
  virtual void answer(call_id id, result<json> value) = 0;

  /// KeyboardInterrupt in the running snippet, or the end of the running command. Thread-safe.
  virtual void interrupt() = 0;

  /// Ends everything in it and reports what was verified gone. A running snippet ends as killed.
  /// Idempotent: later calls report the same. Thread-safe.
  virtual void close(closed_fn done) = 0;

  /// What separates it from the host, as in force: e.g. "user+pid+mount+net namespaces, seccomp".
  [[nodiscard]] virtual std::string_view isolation() const noexcept = 0;
};

/// What a backend promises on every machine where it opens sandboxes at all.
struct executor_abilities {
  bool isolated = false;       ///< code inside reaches no file or process but its own
  bool network_none = false;   ///< code inside reaches no network
  bool memory_limit = false;   ///< memory_bytes, at least for each process
  bool process_limit = false;  ///< processes
  bool disk_limit = false;     ///< work_bytes and tmp_bytes
  bool checkpoints = false;    ///< goes back to before a snippet that was killed
  bool forks = false;          ///< branches a session
};

struct executor_info {
  std::string name;                  ///< "jail"
  std::string isolation;             ///< what a sandbox will get here
  std::vector<std::string> missing;  ///< layers that this machine does not give, and why
  std::string python;                ///< "3.11.2"
  executor_abilities abilities{};
};

struct executor_stats {
  std::uint64_t opened = 0;
  std::uint64_t closed = 0;
  std::uint64_t open_failures = 0;
  std::uint64_t unclean_closes = 0;
  std::size_t live = 0;
  micros open_total{0};  ///< request to ready, summed
  micros teardown_total{0};
};

/// A backend. Resource. Thread-safe.
class executor {
public:
  using opened_fn = std::function<void(result<std::shared_ptr<sandbox>>)>;

  virtual ~executor() = default;

  /// Opens one sandbox; `done` is called once on the reactor's thread.
  /// Errors  unavailable (backend down), timeout (open_timeout), invalid_argument (spec).
  virtual void open(sandbox_spec spec, opened_fn done) = 0;

  [[nodiscard]] virtual executor_info info() const = 0;
  [[nodiscard]] virtual executor_stats stats() const = 0;
};

}  // namespace troupe

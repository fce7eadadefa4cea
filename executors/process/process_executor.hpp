#pragma once
// An executor without isolation: plain child processes, for code that the user trusts as much as
// their own. For machines where the jail cannot start, and for packages of the user's own Python.

#include "executors/executor.hpp"
#include "runtime/net/reactor.hpp"

#include <memory>
#include <string>

namespace troupe {

struct process_options {
  /// The interpreter: a path, or a name to be found by PATH. A virtual environment's python brings
  /// that environment's packages.
  std::string python = "python3";
  /// The troupe-keeper program. Empty: beside the running program, or in ../libexec/troupe from it.
  std::string keeper_path{};
  /// Where each sandbox has its directory. Empty: TMPDIR, or /tmp.
  std::string directory{};
  /// The name that a spec may give as its profile; only its limits count here.
  std::string profile = "default";
};

/// Opens sandboxes as children of this process. Never chosen unless it is asked for by name.
/// In each, a keeper holds a Python interpreter with the same worker as the jail's, in a private
/// directory that goes with it. When this process dies, the keepers end all sandboxes.
///
/// Its limits: rlimits on address space, file size and open files, and the import allow-list. What
/// it does not do stands in info().missing. Sure at the end of a sandbox is that none of its
/// processes is left, whatever sessions they made, unless the code killed its keeper: then those
/// are found that kept the session or the environment.
///
/// Destroy it while the reactor runs, and not on its thread: the destructor closes all sandboxes
/// and waits until their processes are gone (at most 30 s).
class process_executor final : public executor {
public:
  explicit process_executor(reactor& io, const process_options& options = {});
  ~process_executor() override;
  process_executor(const process_executor&) = delete;
  process_executor& operator=(const process_executor&) = delete;

  void open(sandbox_spec spec, opened_fn done) override;
  [[nodiscard]] executor_info info() const override;
  [[nodiscard]] executor_stats stats() const override;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

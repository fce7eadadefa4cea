#pragma once
// The default executor: kernel-level jails, forked from a warm Python, without a daemon.

#include "executors/executor.hpp"
#include "executors/sandbox_profile.hpp"
#include "runtime/core/memory.hpp"
#include "runtime/net/reactor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Of one sandbox with a network, at once; more wait until one ends. Each takes two descriptors of
/// ours, and code inside may make as many as it likes.
inline constexpr std::size_t max_sandbox_connections = 16;

struct jail_options {
  /// The troupe-zygote program. Empty: beside the running program, or in ../libexec/troupe from it.
  std::string zygote_path;
  /// One at least, by different names. A spec names the one that it wants.
  std::vector<sandbox_profile> profiles{1};
  /// Bytes that the machine has left: below spare_memory_bytes none is made ahead.
  std::function<std::uint64_t()> memory = available_memory;
};

/// Opens sandboxes as children of this process. Works as root and without (info() tells what is
/// lost). A profile's zygote starts with its first `open`, and again when it has died; live
/// sandboxes do not notice. When this process dies, all sandboxes die.
///
/// Destroy it while the reactor runs, and not on its thread: the destructor closes all sandboxes
/// and waits until their processes are gone (at most 10 s).
class jail_executor final : public executor {
public:
  explicit jail_executor(reactor& io, const jail_options& options = {});
  ~jail_executor() override;
  jail_executor(const jail_executor&) = delete;
  jail_executor& operator=(const jail_executor&) = delete;

  void open(sandbox_spec spec, opened_fn done) override;
  [[nodiscard]] executor_info info() const override;
  [[nodiscard]] executor_stats stats() const override;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

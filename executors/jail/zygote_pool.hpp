#pragma once
// One profile of the jail: its zygote, what it gives here, and the sandboxes made ahead.

#include "executors/executor.hpp"
#include "executors/jail/jail_core.hpp"
#include "executors/jail/zygote_client.hpp"
#include "executors/sandbox_profile.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace troupe::jail {

/// Reactor's thread only, except `info`.
class zygote_pool : public std::enable_shared_from_this<zygote_pool> {
public:
  zygote_pool(std::shared_ptr<jail_core> core, const std::string& zygote_path,
              sandbox_profile profile);

  void start();  ///< once, before anything else

  [[nodiscard]] const sandbox_profile& profile() const noexcept { return profile_; }
  [[nodiscard]] const std::shared_ptr<jail_core>& core() const noexcept { return core_; }
  [[nodiscard]] zygote_client& zygote() noexcept { return *zygote_; }

  /// A sandbox made ahead that fits, else a new one.
  [[nodiscard]] std::shared_ptr<jail_session> take(const sandbox_spec& spec);

  /// A worker had what it was asked for, and the next is thought to be asked for the same.
  void note_opened(const sandbox_spec& spec);
  /// It had not.
  void note_refused(const sandbox_spec& spec);
  /// True when a worker has had these.
  [[nodiscard]] bool installs(const std::vector<std::string>& imports) const;

  /// Set-up steps that a sandbox had to do without (lacking_* bits).
  void note_lacking(int bits);

  /// Errors  unavailable: a layer that the profile requires is not to be had here, and why. Before
  /// the zygote is ready only what is known without it counts.
  [[nodiscard]] result<void> check_layers() const;

  /// Ends the sandboxes made ahead, and makes no more.
  void drain();

  /// The profile's part: isolation, missing layers, Python.
  [[nodiscard]] executor_info info() const;

private:
  void refill_soon(const sandbox_spec& spec);
  void refill();

  std::shared_ptr<jail_core> core_;
  sandbox_profile profile_;
  std::string zygote_path_;
  std::shared_ptr<zygote_client> zygote_;
  std::vector<std::shared_ptr<jail_session>> ready_;
  sandbox_spec wanted_;  ///< without files; its tools and rules are those of the last that opened
  std::set<std::vector<std::string>> installed_;
  bool refilling_ = false;
  bool drained_ = false;

  mutable std::mutex mutex_;
  zygote_hello hello_;  ///< guarded by mutex_, like the next
  int lacking_ = 0;
};

}  // namespace troupe::jail

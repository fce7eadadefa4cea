#include "executors/jail/zygote_pool.hpp"

#include "executors/jail/jail_session.hpp"
#include "runtime/core/memory.hpp"

#include <algorithm>

namespace troupe::jail {
namespace {

constexpr millis refill_pause{2};

std::vector<std::string> launcher_arguments(const sandbox_profile& p) {
  std::vector<std::string> out;
  auto add = [&](const char* key, const std::string& value) {
    if (!value.empty())
      out.push_back(std::string{key} + "=" + value);
  };
  add("python", p.python);
  if (p.network)
    add("proxy", "http://127.0.0.1:" + std::to_string(proxy_port));
  add("root", p.root);
  for (const auto& name : p.programs)
    add("program", name);
  for (const auto& m : p.mounts)
    add("mount", m.from + ":" + m.to);
  for (const auto& module : p.preload)
    add("import", module);
  for (const auto& module : p.preload_if_present)
    add("try_import", module);
  return out;
}

std::string isolation_text(const zygote_hello& hello, int lacking, cgroup_kind groups,
                           bool network) {
  if (!hello.ready)
    return {};
  std::string text = "user, pid, mount, ipc, uts and cgroup namespaces, "
                     + std::string{network ? "a network namespace with a proxy as its only way out"
                                           : "an empty network namespace"}
                     + ", read-only root, seccomp, no_new_privs, no capabilities, rlimits";
  if ((lacking & lacking_landlock) == 0)
    text += ", Landlock";
  if (groups != cgroup_kind::none)
    text += groups == cgroup_kind::v2 ? ", cgroup v2 limits" : ", cgroup v1 limits";
  text += hello.root ? ", host uids of its own" : ", rootless";
  if ((lacking & lacking_proc) != 0)
    text += ", no /proc";
  return text;
}

struct missing_layer {
  isolation_layer layer;
  std::string why;
};

std::vector<missing_layer> missing_layers(const zygote_hello& hello, int lacking,
                                          const cgroup_tree& groups) {
  std::vector<missing_layer> missing;
  if (groups.kind() == cgroup_kind::none)
    missing.push_back({isolation_layer::cgroups,
                       "cgroup limits: memory, processes and CPU are bounded by rlimits and "
                       "deadlines only ("
                         + groups.why() + ")"});
  if (hello.ready && !hello.root)
    missing.push_back({isolation_layer::host_uids, "a host uid for each sandbox: needs root"});
  if ((lacking & lacking_landlock) != 0)
    missing.push_back({isolation_layer::landlock,
                       "Landlock: the kernel has none (it needs CONFIG_SECURITY_LANDLOCK, and "
                       "landlock among its lsm= modules)"});
  if ((lacking & lacking_proc) != 0)
    missing.push_back({isolation_layer::proc,
                       "/proc inside: this host masks parts of its own, so the kernel refuses a "
                       "fresh one"});
  if ((lacking & lacking_nesting_limit) != 0)
    missing.push_back({isolation_layer::nesting_limit,
                       "the limit on nested user namespaces: max_user_namespaces cannot be "
                       "written (seccomp denies them all the same)"});
  return missing;
}

constexpr executor_abilities abilities{.isolated = true,
                                       .network_none = true,
                                       .memory_limit = true,
                                       .process_limit = true,
                                       .disk_limit = true,
                                       .checkpoints = true,
                                       .forks = true};

}  // namespace

zygote_pool::zygote_pool(std::shared_ptr<jail_core> core, const std::string& zygote_path,
                         sandbox_profile profile)
  : core_{std::move(core)}, profile_{std::move(profile)}, zygote_path_{zygote_path} {}

void zygote_pool::start() {
  zygote_ = std::make_shared<zygote_client>(core_->io, zygote_path_, launcher_arguments(profile_),
                                            [weak = weak_from_this()](const zygote_hello& hello) {
                                              if (auto self = weak.lock()) {
                                                std::lock_guard lock{self->mutex_};
                                                self->hello_ = hello;
                                              }
                                            });
}

std::shared_ptr<jail_session> zygote_pool::take(const sandbox_spec& spec) {
  refill_soon(spec);
  while (!ready_.empty()) {
    auto s = std::move(ready_.back());
    ready_.pop_back();
    if (s->ready() && s->fits(spec))
      return s;
    s->close({});
  }
  return std::make_shared<jail_session>(shared_from_this(), spec);
}

/// One at a time, each a moment after the reactor has done something else: whoever waits for a
/// sandbox now comes first.
void zygote_pool::refill_soon(const sandbox_spec& spec) {
  wanted_.profile = spec.profile;
  wanted_.limits = spec.limits;
  wanted_.checkpoints = spec.checkpoints;
  wanted_.network = spec.network;
  if (profile_.ready > 0 && !std::exchange(refilling_, true))
    core_->io.in(refill_pause, [weak = weak_from_this()] {
      if (auto self = weak.lock())
        self->refill();
    });
}

void zygote_pool::refill() {
  refilling_ = false;
  std::erase_if(ready_, [](const auto& s) { return s->gone(); });
  if (drained_ || ready_.size() >= profile_.ready || core_->memory() < spare_memory_bytes)
    return;
  auto s = std::make_shared<jail_session>(shared_from_this(), wanted_);
  ready_.push_back(s);
  s->prepare_ahead(wanted_);
  if (!s->gone())
    refill_soon(wanted_);
}

void zygote_pool::drain() {
  drained_ = true;
  ready_.clear();
}

void zygote_pool::note_opened(const sandbox_spec& spec) {
  constexpr std::size_t most = 64;
  if (installed_.size() < most)
    installed_.insert(spec.imports);
  wanted_.tools = spec.tools;
  wanted_.imports = spec.imports;
}

void zygote_pool::note_refused(const sandbox_spec& spec) {
  installed_.erase(spec.imports);
  wanted_.tools.clear();
  wanted_.imports.clear();
}

bool zygote_pool::installs(const std::vector<std::string>& imports) const {
  return imports.empty() || installed_.contains(imports);
}

void zygote_pool::note_lacking(int bits) {
  std::lock_guard lock{mutex_};
  lacking_ |= bits;
}

result<void> zygote_pool::check_layers() const {
  std::lock_guard lock{mutex_};
  for (const auto& m : missing_layers(hello_, lacking_, core_->groups))
    if (std::ranges::find(profile_.required, m.layer) != profile_.required.end())
      return fail(errc::unavailable, "the sandbox profile '" + profile_.name + "' requires "
                                       + std::string{to_string(m.layer)}
                                       + ", which is missing here: " + m.why);
  return {};
}

executor_info zygote_pool::info() const {
  std::lock_guard lock{mutex_};
  executor_info info{
    "jail",
    isolation_text(hello_, lacking_, core_->groups.kind(), profile_.network.has_value()),
    {},
    hello_.python,
    abilities};
  for (auto& m : missing_layers(hello_, lacking_, core_->groups))
    info.missing.push_back(std::move(m.why));
  if (!hello_.ready)
    info.missing.assign({"not known before the first sandbox has been opened"});
  return info;
}

}  // namespace troupe::jail

#include "executors/jail/cgroup.hpp"

#include "executors/jail/sys.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe::jail {
namespace fs = std::filesystem;

/// Our own directory in each hierarchy; empty where it is not used.
struct cgroup_layout {
  cgroup_kind kind = cgroup_kind::none;
  std::string memory;
  std::string pids;
  std::string cpu;
  std::string cpuacct;
  std::string v2;

  /// Each once: controllers may share a hierarchy.
  [[nodiscard]] std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (const auto* dir : {&memory, &pids, &cpu, &cpuacct, &v2})
      if (!dir->empty() && std::ranges::find(out, *dir) == out.end())
        out.push_back(*dir);
    return out;
  }
};

namespace {

constexpr std::string_view own_prefix = "troupe.";
constexpr auto cpu_period = std::chrono::microseconds{100'000};

// --- small files
// -----------------------------------------------------------------------------------

std::string read_text(const std::string& path) {
  unique_fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  char buffer[1024];
  auto size = fd ? ::read(fd.get(), buffer, sizeof buffer) : -1;
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string{};
}

std::uint64_t read_number(const std::string& path) {
  auto text = read_text(path);
  std::uint64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

/// The number after `key` in a file of "key number" lines.
std::uint64_t read_field(const std::string& path, std::string_view key) {
  std::istringstream lines{read_text(path)};
  std::string name;
  for (std::uint64_t n = 0; lines >> name >> n;)
    if (name == key)
      return n;
  return 0;
}

bool write_text(const std::string& path, const std::string& text) {
  return write_file(path.c_str(), text);
}

error failed(const std::string& path) {
  auto number = errno;
  return {errc::unavailable, "control group: " + path + ": " + errno_text(number)};
}

// --- where we are
// ----------------------------------------------------------------------------------

struct hierarchy {
  std::string directory;  ///< this process's own group
  bool v2 = false;
  std::vector<std::string> controllers;
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in{text};
  for (std::string part; std::getline(in, part, by);)
    parts.push_back(part);
  return parts;
}

/// The group's path in the mounted tree, of which `root` is the top. Nothing when it is outside.
std::optional<std::string> below(const std::string& point, const std::string& root,
                                 const std::string& group) {
  if (root == "/")
    return point + (group == "/" ? "" : group);
  if (group == root)
    return point;
  if (group.starts_with(root + "/"))
    return point + group.substr(root.size());
  return std::nullopt;
}

/// The path of this process in the hierarchy with these controllers; none for version 2.
std::optional<std::string> membership(const cgroup_paths& paths, const std::string& controller) {
  std::ifstream file{paths.membership};
  for (std::string line; std::getline(file, line);) {
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    auto names = split(line.substr(first + 1, second - first - 1), ',');
    auto v2 = line.starts_with("0::");
    if (controller.empty() ? v2 : std::ranges::find(names, controller) != names.end())
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::vector<hierarchy> find_hierarchies(const cgroup_paths& paths) {
  std::vector<hierarchy> found;
  std::ifstream mounts{paths.mounts};
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words{line};
    std::string id, parent, device, root, point, word, type, source, options;
    words >> id >> parent >> device >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    if (type != "cgroup" && type != "cgroup2")
      continue;
    hierarchy h;
    h.v2 = type == "cgroup2";
    for (const auto& name : split(options, ','))
      if (name == "memory" || name == "pids" || name == "cpu" || name == "cpuacct")
        h.controllers.push_back(name);
    if (!h.v2 && h.controllers.empty())
      continue;
    auto group = membership(paths, h.v2 ? std::string{} : h.controllers.front());
    auto directory = group ? below(point, root, *group) : std::nullopt;
    if (!directory)
      continue;
    h.directory = *directory;
    if (h.v2)
      h.controllers = split(read_text(h.directory + "/cgroup.controllers"), ' ');
    for (auto& name : h.controllers)
      if (name.ends_with('\n'))
        name.pop_back();
    found.push_back(std::move(h));
  }
  return found;
}

// --- whose a directory is
// --------------------------------------------------------------------------

/// Clock ticks from boot to the start of the process; 0 when there is none.
std::uint64_t start_time(std::uint64_t pid) {
  auto text = read_text("/proc/" + std::to_string(pid) + "/stat");
  auto name_end = text.rfind(')');
  if (name_end == std::string::npos)
    return 0;
  std::istringstream words{text.substr(name_end + 1)};
  std::string word;
  for (int field = 3; field < 22; ++field)
    words >> word;
  std::uint64_t ticks = 0;
  words >> ticks;
  return ticks;
}

std::string make_own_name() {
  static std::atomic<unsigned> count{0};
  auto pid = static_cast<std::uint64_t>(::getpid());
  return std::string{own_prefix} + std::to_string(pid) + "." + std::to_string(start_time(pid)) + "."
         + std::to_string(++count);
}

/// True for the directory of a process that has gone.
bool is_leftover(const std::string& name) {
  if (!name.starts_with(own_prefix))
    return false;
  auto parts = split(name, '.');
  if (parts.size() != 4)
    return false;
  std::uint64_t pid = 0, ticks = 0;
  std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), pid);
  std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), ticks);
  return pid != 0 && ticks != 0 && start_time(pid) != ticks;
}

std::vector<std::string> subdirectories(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator it{directory, ec}, end; !ec && it != end; it.increment(ec))
    if (it->is_directory(ec))
      names.push_back(it->path().filename().string());
  return names;
}

/// One level deep is all that we make. The kernel removes no group with a process in it.
bool remove_tree(const std::string& directory) {
  for (const auto& name : subdirectories(directory))
    ::rmdir((fs::path{directory} / name).c_str());
  return ::rmdir(directory.c_str()) == 0 || errno == ENOENT;
}

bool is_empty(const std::string& directory) {
  if (!read_text(directory + "/cgroup.procs").empty())
    return false;
  return std::ranges::all_of(subdirectories(directory), [&](const std::string& name) {
    return read_text(directory + "/" + name + "/cgroup.procs").empty();
  });
}

// --- making our own
// --------------------------------------------------------------------------------

/// Version 2 gives controllers only to children of a group that has no process of its own: this
/// process moves into a leaf, if it is alone there.
bool share_controllers(const std::string& directory, std::string& why) {
  constexpr const char* wanted = "+memory +pids +cpu";
  auto control = directory + "/cgroup.subtree_control";
  if (write_text(control, wanted))
    return true;
  if (errno != EBUSY) {
    why = control + ": " + errno_text(errno);
    return false;
  }
  if (read_text(directory + "/cgroup.procs") != std::to_string(::getpid()) + "\n") {
    why = directory
          + " holds other processes too; start troupe in a group of its own, e.g. with "
            "systemd-run --user --scope -p Delegate=yes";
    return false;
  }
  auto leaf = directory + "/troupe-runtime";
  ::mkdir(leaf.c_str(), 0755);
  if (write_text(leaf + "/cgroup.procs", "0") && write_text(control, wanted))
    return true;
  why = control + ": " + errno_text(errno);
  return false;
}

bool has(const hierarchy& h, std::string_view controller) {
  return std::ranges::find(h.controllers, controller) != h.controllers.end();
}

}  // namespace

// --- one sandbox's
// ---------------------------------------------------------------------------------

cgroup::cgroup(std::shared_ptr<const cgroup_layout> layout, std::string name)
  : layout_{std::move(layout)}, name_{"/" + std::move(name)} {}

result<void> cgroup::create(const cgroup_limits& limits) {
  for (const auto& dir : layout_->all())
    if (::mkdir((dir + name_).c_str(), 0755) != 0)
      return fail(failed(dir + name_));
  auto v2 = layout_->kind == cgroup_kind::v2;
  auto set = [&](const std::string& dir, const char* file, const std::string& text) {
    return write_text(dir + name_ + "/" + file, text);
  };
  auto memory = std::to_string(limits.memory_bytes);
  if (!set(layout_->memory, v2 ? "memory.max" : "memory.limit_in_bytes", memory))
    return fail(failed(layout_->memory + name_));
  // Only where there is swap to account for.
  v2 ? set(layout_->memory, "memory.swap.max", "0")
     : set(layout_->memory, "memory.memsw.limit_in_bytes", memory);
  if (v2 && !set(layout_->memory, "memory.oom.group", "1"))
    return fail(failed(layout_->memory + name_));
  if (!set(layout_->pids, "pids.max", std::to_string(limits.processes)))
    return fail(failed(layout_->pids + name_));
  if (limits.cpus > 0) {
    auto quota = std::to_string(std::lround(
      limits.cpus * static_cast<double>(std::chrono::microseconds{cpu_period}.count())));
    auto period = std::to_string(cpu_period.count());
    auto ok = v2 ? set(layout_->cpu, "cpu.max", quota + " " + period)
                 : set(layout_->cpu, "cpu.cfs_period_us", period)
                     && set(layout_->cpu, "cpu.cfs_quota_us", quota);
    if (!ok)
      return fail(failed(layout_->cpu + name_));
  }
  return {};
}

/// The kernel removes no group with a process in it, and whoever is in one is in all: init joins
/// them before it forks. One that has been killed takes no CLONE_INTO_CGROUP any more (Linux 6.18).
bool cgroup::is_left() const {
  const auto& l = *layout_;
  if (!l.v2.empty())
    return ::rmdir((l.v2 + name_).c_str()) == 0 || errno == ENOENT;
  return read_text(l.pids + name_ + "/pids.current") == "0\n";
}

bool cgroup::renew() const {
  constexpr std::uint64_t leftover_bytes = 1u << 20;  // the kernel's reserves for each processor
  const auto& l = *layout_;
  return l.kind == cgroup_kind::hybrid && is_left()
         && read_number(l.memory + name_ + "/memory.usage_in_bytes") <= leftover_bytes
         && write_text(l.memory + name_ + "/memory.max_usage_in_bytes", "0")
         && write_text(l.cpuacct + name_ + "/cpuacct.usage", "0")
         && (l.v2.empty() || ::mkdir((l.v2 + name_).c_str(), 0755) == 0);
}

result<cgroup_entry> cgroup::entry() const {
  cgroup_entry e;
  for (const auto& dir : layout_->all()) {
    auto into = dir == layout_->v2;
    auto path = dir + name_ + (into ? "" : "/tasks");
    unique_fd fd{::open(path.c_str(), O_CLOEXEC | (into ? O_RDONLY | O_DIRECTORY : O_WRONLY))};
    if (!fd)
      return fail(failed(path));
    if (into)
      e.into = std::move(fd);
    else
      e.tasks.push_back(std::move(fd));
  }
  return e;
}

bool cgroup::notify_oom(int eventfd) const {
  if (layout_->kind == cgroup_kind::v2)
    return false;
  auto dir = layout_->memory + name_;
  unique_fd watched{::open((dir + "/memory.oom_control").c_str(), O_RDONLY | O_CLOEXEC)};
  return watched
         && write_text(dir + "/cgroup.event_control",
                       std::to_string(eventfd) + " " + std::to_string(watched.get()));
}

bool cgroup::kill() const {
  return !layout_->v2.empty() && write_text(layout_->v2 + name_ + "/cgroup.kill", "1");
}

micros cgroup::cpu() const {
  if (layout_->kind == cgroup_kind::v2)
    return micros{read_field(layout_->cpuacct + name_ + "/cpu.stat", "usage_usec")};
  return std::chrono::duration_cast<micros>(
    std::chrono::nanoseconds{read_number(layout_->cpuacct + name_ + "/cpuacct.usage")});
}

std::uint64_t cgroup::peak_memory_bytes() const {
  auto v2 = layout_->kind == cgroup_kind::v2;
  return read_number(layout_->memory + name_
                     + (v2 ? "/memory.peak" : "/memory.max_usage_in_bytes"));
}

std::uint64_t cgroup::oom_kills() const {
  auto v2 = layout_->kind == cgroup_kind::v2;
  return read_field(layout_->memory + name_ + (v2 ? "/memory.events" : "/memory.oom_control"),
                    "oom_kill");
}

void cgroup::reset_peak() const {
  if (layout_->kind == cgroup_kind::hybrid)
    write_text(layout_->memory + name_ + "/memory.max_usage_in_bytes", "0");
}

bool cgroup::remove() {
  auto gone = true;
  for (const auto& dir : layout_->all())
    if (::rmdir((dir + name_).c_str()) != 0 && errno != ENOENT)
      gone = false;
  return gone;
}

// --- the tree
// --------------------------------------------------------------------------------------

cgroup_tree cgroup_tree::probe(const cgroup_paths& paths) {
  sweep_cgroups(find_cgroup_leftovers(paths));
  cgroup_tree tree;
  auto layout = std::make_shared<cgroup_layout>();
  auto name = "/" + make_own_name();
  const auto all = find_hierarchies(paths);
  for (const auto& h : all)
    if (h.v2 && has(h, "memory") && has(h, "pids") && has(h, "cpu")) {
      if (!share_controllers(h.directory, tree.why_))
        return tree;
      layout->kind = cgroup_kind::v2;
      layout->memory = layout->pids = layout->cpu = layout->cpuacct = layout->v2 =
        h.directory + name;
    }
  if (layout->kind == cgroup_kind::none) {
    for (const auto& h : all) {
      if (h.v2)
        layout->v2 = h.directory + name;
      for (auto [controller, dir] :
           {std::pair{"memory", &layout->memory}, std::pair{"pids", &layout->pids},
            std::pair{"cpu", &layout->cpu}, std::pair{"cpuacct", &layout->cpuacct}})
        if (!h.v2 && has(h, controller))
          *dir = h.directory + name;
    }
    if (layout->memory.empty() || layout->pids.empty() || layout->cpu.empty()
        || layout->cpuacct.empty()) {
      tree.why_ = "no hierarchy with the memory, pids, cpu and cpuacct controllers is mounted";
      return tree;
    }
    layout->kind = cgroup_kind::hybrid;
  }
  for (const auto& dir : layout->all()) {
    if (::mkdir(dir.c_str(), 0755) == 0)
      continue;
    tree.why_ = dir + ": " + errno_text(errno);
    for (const auto& made : layout->all())
      ::rmdir(made.c_str());
    return tree;
  }
  if (layout->kind == cgroup_kind::v2
      && !write_text(layout->v2 + "/cgroup.subtree_control", "+memory +pids +cpu")) {
    tree.why_ = layout->v2 + ": " + errno_text(errno);
    ::rmdir(layout->v2.c_str());
    return tree;
  }
  // A machine may show the hierarchies and refuse the files: better seen here than by each sandbox.
  cgroup trial{layout, "trial"};
  auto made = trial.create({.memory_bytes = 64u << 20, .processes = 8, .cpus = 1});
  auto entered = made ? trial.entry() : result<cgroup_entry>{fail(made.error())};
  static_cast<void>(trial.remove());
  if (!entered) {
    tree.why_ = entered.error().detail;
    for (const auto& dir : layout->all())
      remove_tree(dir);
    return tree;
  }
  tree.layout_ = std::move(layout);
  return tree;
}

cgroup_tree::cgroup_tree(cgroup_tree&&) noexcept = default;

cgroup_tree& cgroup_tree::operator=(cgroup_tree&& x) noexcept {
  std::swap(layout_, x.layout_);
  std::swap(why_, x.why_);
  std::swap(last_, x.last_);
  std::swap(spares_, x.spares_);
  return *this;
}

cgroup_tree::~cgroup_tree() {
  if (layout_)
    for (const auto& dir : layout_->all())
      remove_tree(dir);
}

cgroup_kind cgroup_tree::kind() const noexcept {
  return layout_ ? layout_->kind : cgroup_kind::none;
}

std::unique_ptr<cgroup> cgroup_tree::make() {
  return std::make_unique<cgroup>(layout_, std::to_string(++last_));
}

std::unique_ptr<cgroup> cgroup_tree::take_spare(const cgroup_limits& limits) {
  auto it = std::ranges::find(spares_, limits, &spare::limits);
  if (it == spares_.end())
    return nullptr;
  auto group = std::move(it->group);
  spares_.erase(it);
  return group;
}

bool cgroup_tree::give_back(std::unique_ptr<cgroup>& group, const cgroup_limits& limits) {
  constexpr std::size_t most = 16;
  if (!group->renew())
    return group->remove();
  spares_.push_back({limits, std::move(group)});
  if (spares_.size() > most) {
    static_cast<void>(spares_.front().group->remove());
    spares_.pop_front();
  }
  return true;
}

std::vector<cgroup_leftover> find_cgroup_leftovers(const cgroup_paths& paths) {
  std::vector<cgroup_leftover> found;
  for (const auto& h : find_hierarchies(paths))
    for (const auto& name : subdirectories(h.directory))
      if (is_leftover(name)) {
        auto path = h.directory + "/" + name;
        found.push_back({path, is_empty(path)});
      }
  return found;
}

std::size_t sweep_cgroups(const std::vector<cgroup_leftover>& all) {
  return static_cast<std::size_t>(std::ranges::count_if(
    all, [](const cgroup_leftover& one) { return one.empty && remove_tree(one.path); }));
}

}  // namespace troupe::jail

#include "runtime/host/leaks.hpp"

#include "executors/jail/cgroup.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <thread>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A member of /proc/PID/status, without its name and blanks; empty when the process is gone.
std::string status_of(const fs::path& process, std::string_view key) {
  std::ifstream in{process / "status"};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      auto from = line.find_first_not_of(" \t", key.size());
      return from == std::string::npos ? std::string{} : line.substr(from);
    }
  return {};
}

bool exists(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

}  // namespace

std::vector<leak> find_leaks() {
  std::vector<leak> found;
  for (const auto& group : jail::find_cgroup_leftovers())
    found.push_back({"control group " + group.path, group.path, 0, group.empty});
  std::error_code ec;
  for (fs::directory_iterator it{"/proc", ec}, end; !ec && it != end; it.increment(ec)) {
    auto name = it->path().filename().string();
    pid_t pid = 0;
    auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr != name.data() + name.size() || pid <= 1)
      continue;
    auto called = status_of(it->path(), "Name:");
    if ((called != "troupe-zygote" && called != "troupe-init")
        || status_of(it->path(), "PPid:") != "1"
        || status_of(it->path(), "State:").starts_with('Z'))
      continue;
    struct stat owner {};
    auto ours =
      ::stat(it->path().c_str(), &owner) == 0 && (::geteuid() == 0 || owner.st_uid == ::geteuid());
    found.push_back({fmt::format("sandbox process {}", pid), {}, pid, ours});
  }
  return found;
}

bool remove_leak(const leak& one) {
  if (!one.removable)
    return false;
  if (!one.directory.empty())
    return jail::sweep_cgroups({{one.directory, true}}) == 1;
  ::kill(one.process, SIGKILL);
  for (int i = 0; i < 200 && exists(one.process); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return !exists(one.process);
}

}  // namespace troupe

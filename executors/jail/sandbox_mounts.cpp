#include "executors/jail/sandbox_mounts.hpp"

#include "executors/jail/namespaces.hpp"
#include "executors/jail/sys.hpp"

#include <string>

#include <sys/mount.h>

namespace troupe::jail {
namespace {

constexpr unsigned tmp_inodes = 1'024;
constexpr unsigned work_inodes = 4'096;
constexpr const char* proc_options = "hidepid=2,subset=pid";

void mount_tmpfs(const char* path, std::uint64_t bytes, unsigned inodes, const char* mode) {
  auto id = std::to_string(worker_id);
  auto options = "size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(inodes)
                 + ",mode=" + mode + ",uid=" + id + ",gid=" + id;
  must(::mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0, path);
}

}  // namespace

int mount_sandbox(const spawn_request& request) {
  int lacking = 0;
  // Written through the zygote's /proc: the one below shows no sysctls.
  if (!write_file("/proc/sys/user/max_user_namespaces", "0"))
    lacking |= lacking_nesting_limit;
  mount_tmpfs("/tmp", request.tmp_bytes, tmp_inodes, "1777");
  mount_tmpfs("/work", request.work_bytes, work_inodes, "0700");
  constexpr unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("proc", "/proc", "proc", flags, proc_options) != 0) {
    // A container that masks parts of /proc forbids a fresh one. Rather none than the host's.
    lacking |= lacking_proc;
    must(::mount("none", "/proc", "tmpfs", flags | MS_RDONLY, "size=4k,mode=0555") == 0,
         "cover /proc");
  }
  return lacking;
}

}  // namespace troupe::jail

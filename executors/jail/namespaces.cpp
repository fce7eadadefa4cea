#include "executors/jail/namespaces.hpp"

#include "executors/jail/sys.hpp"

#include <fstream>
#include <string>

#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// One empty network namespace, with lo down, serves all sandboxes of a zygote: socket() is denied
/// by seccomp, so they cannot meet there, and a namespace each would cost 0.4 ms. Only those that
/// may open sockets have one of their own.
constexpr unsigned long zygote_flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;

constexpr unsigned long sandbox_flags =
  CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

std::string one_id(unsigned inside, unsigned outside) {
  return std::to_string(inside) + " " + std::to_string(outside) + " 1\n";
}

/// False for root of a user namespace (rootless containers): the ids that sandboxes get as root do
/// not exist there.
bool owns_all_ids() {
  std::ifstream map{"/proc/self/uid_map"};
  unsigned long inside = 0, outside = 0, count = 0;
  return map >> inside >> outside >> count && inside == 0 && count >= 0xffffffff;
}

/// What failed, and the mend.
std::string refusal(int number) {
  if (number == ENOSPC || number == EUSERS)
    return "make a user namespace (there are none, or no more: raise the sysctl "
           "user.max_user_namespaces)";
  if (number == EPERM)
    return "make a user namespace (a chroot, a container's seccomp or a security module forbids "
           "it: allow it there)";
  return "make a sandbox's namespaces";
}

/// Not as id 0 there: to map a parent's 0 into a sandbox would need CAP_SETFCAP.
void enter_user_namespace() {
  auto uid = ::geteuid();
  auto gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | zygote_flags) != 0)
    give_up_namespaces();
  must(write_file("/proc/self/setgroups", "deny"), "write setgroups");
  must(write_file("/proc/self/uid_map", one_id(worker_id, uid)), "write uid_map");
  must(write_file("/proc/self/gid_map", one_id(worker_id, gid)), "write gid_map");
}

}  // namespace

void give_up_namespaces() {
  auto number = errno;
  throw setup_error{refusal(number), number};
}

privilege enter_zygote_namespaces() {
  auto mode = privilege::rootless;
  if (::geteuid() == 0 && owns_all_ids() && ::unshare(zygote_flags) == 0)
    mode = privilege::root;
  else
    enter_user_namespace();
  must(::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0, "stop mount propagation");
  return mode;
}

pid_t clone_sandbox(int& pidfd, birth_record& birth, int group, bool network) {
  clone_args args{};
  args.flags = sandbox_flags | CLONE_PIDFD | CLONE_PARENT | CLONE_PARENT_SETTID;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  args.parent_tid = reinterpret_cast<std::uintptr_t>(&birth.pid);
  if (network)
    args.flags |= CLONE_NEWNET;
  if (group >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(group);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

void write_id_maps(pid_t pid, privilege mode, const spawn_request& request) {
  auto dir = "/proc/" + std::to_string(pid) + "/";
  std::string uids = one_id(worker_id, worker_id);
  std::string gids = uids;
  if (mode == privilege::root) {
    uids = one_id(init_id, request.init_uid) + one_id(worker_id, request.worker_uid);
    gids = uids;
  } else {
    must(write_file((dir + "setgroups").c_str(), "deny"), "write the sandbox's setgroups");
  }
  must(write_file((dir + "uid_map").c_str(), uids), "write the sandbox's uid_map");
  must(write_file((dir + "gid_map").c_str(), gids), "write the sandbox's gid_map");
}

}  // namespace troupe::jail

#include "executors/jail/caps.hpp"

#include "executors/jail/sys.hpp"

#include <initializer_list>

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

using capabilities = std::initializer_list<unsigned>;

// What each process keeps. Everything else is dropped; the worker keeps nothing.
constexpr capabilities zygote_keeps = {CAP_SETUID, CAP_SETGID};
constexpr capabilities init_keeps = {CAP_KILL};
constexpr capabilities worker_keeps = {};

/// Root gives no capability, none survives in the ambient set, and no program can undo that.
constexpr unsigned long locked_bits =
  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED
  | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

void keep_only(capabilities kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (auto cap : kept) {
    data[CAP_TO_INDEX(cap)].permitted |= CAP_TO_MASK(cap);
    data[CAP_TO_INDEX(cap)].effective |= CAP_TO_MASK(cap);
  }
  must(::syscall(SYS_capset, &header, data) == 0, "capset");
}

void empty_bounding_set() {
  unsigned long cap = 0;
  while (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
    ++cap;
  must(cap > CAP_SETFCAP && errno == EINVAL, "drop the bounding set");  // the first that is none
}

void forbid_new_privileges() {
  must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
}

void take_ids(unsigned id) {
  must(::setgroups(0, nullptr) == 0, "setgroups");
  must(::setresgid(id, id, id) == 0, "setresgid");
  must(::setresuid(id, id, id) == 0, "setresuid");
}

}  // namespace

void reduce_zygote(privilege mode) {
  // In its own user namespace it needs no capability at all: one id is mapped by its owner.
  keep_only(mode == privilege::root ? zygote_keeps : capabilities{});
  forbid_new_privileges();
}

void become_init(privilege mode) {
  if (mode == privilege::root)
    take_ids(init_id);
}

void reduce_init(privilege mode) {
  keep_only(mode == privilege::root ? init_keeps : capabilities{});
  forbid_new_privileges();
  must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "not dumpable");
}

void become_worker(privilege mode) {
  empty_bounding_set();
  must(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, "clear ambient set");
  must(::prctl(PR_SET_SECUREBITS, locked_bits, 0, 0, 0) == 0, "lock securebits");
  if (mode == privilege::root)
    take_ids(worker_id);
  keep_only(worker_keeps);
  forbid_new_privileges();
  must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "not dumpable");
}

}  // namespace troupe::jail

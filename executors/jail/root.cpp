#include "executors/jail/root.hpp"

#include "executors/jail/namespaces.hpp"
#include "executors/jail/sys.hpp"

#include <string>

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

#ifndef AT_RECURSIVE
constexpr unsigned AT_RECURSIVE = 0x8000;
#endif

// --- the template
// ---------------------------------------------------------------------------------

constexpr std::uint64_t read_only = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t device = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
// Not read-only: a sandbox limits its nested user namespaces through it, then covers it.
constexpr std::uint64_t process_files = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

struct bind {
  const char* path;
  std::uint64_t attributes;
};

constexpr bind binds[] = {
  {"/usr", read_only},   {"/proc", process_files}, {"/dev/null", device},   {"/dev/zero", device},
  {"/dev/full", device}, {"/dev/random", device},  {"/dev/urandom", device}};

/// Links into /usr on a merged system, directories elsewhere.
constexpr const char* top_level[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

constexpr const char* directories[] = {"/dev", "/etc", "/tmp", "/work"};

struct link {
  const char* target;
  const char* path;
};

constexpr link links[] = {{"/proc/self/fd", "/dev/fd"},
                          {"/proc/self/fd/0", "/dev/stdin"},
                          {"/proc/self/fd/1", "/dev/stdout"},
                          {"/proc/self/fd/2", "/dev/stderr"},
                          {"/tmp", "/dev/shm"}};

struct text_file {
  const char* path;
  const char* text;
};

constexpr text_file text_files[] = {
  {"/etc/passwd", "root:x:0:0:root:/work:/usr/sbin/nologin\n"
                  "sandbox:x:1000:1000:sandbox:/work:/bin/sh\n"
                  "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
  {"/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
  {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
  {"/etc/hosts", "127.0.0.1 localhost\n"}};

// --- what each sandbox adds
// -------------------------------------------------------------------------

constexpr unsigned tmp_inodes = 1'024;
constexpr unsigned work_inodes = 4'096;
constexpr const char* proc_options = "hidepid=2,subset=pid";

// ----------------------------------------------------------------------------------------------------

// While the template is built, the old root hangs here and the new one grows there.
const std::string old_root = "/old";
const std::string new_root = "/new";

void set_attributes(const std::string& path, std::uint64_t attributes, unsigned flags) {
  mount_attr attr{};
  attr.attr_set = attributes;
  must(::syscall(SYS_mount_setattr, -1, path.c_str(), flags, &attr, sizeof attr) == 0,
       ("set mount attributes of " + path).substr(0, 47).c_str());
}

void make_directory(const std::string& path) {
  must(::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST, "make a directory of the root");
}

void make_directories(const std::string& path) {
  for (auto at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    make_directory(path.substr(0, at));
  make_directory(path);
}

void bind_into_root(const std::string& path, std::uint64_t attributes) {
  auto from = old_root + path;
  auto to = new_root + path;
  struct stat info {};
  must(::stat(from.c_str(), &info) == 0, ("find " + path).substr(0, 47).c_str());
  if (S_ISDIR(info.st_mode))
    make_directories(to);
  else
    must(write_file(to.c_str(), ""), "make a device's mount point");
  must(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0,
       ("bind " + path).substr(0, 47).c_str());
  set_attributes(to, attributes, AT_RECURSIVE);
}

void add_top_level(const std::string& path) {
  auto from = old_root + path;
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0)
    return;
  if (!S_ISLNK(info.st_mode)) {
    bind_into_root(path, read_only);
    return;
  }
  char target[256];
  auto size = ::readlink(from.c_str(), target, sizeof target - 1);
  must(size > 0, "read a top-level link");
  target[size] = '\0';
  must(::symlink(target, (new_root + path).c_str()) == 0, "make a top-level link");
}

/// The loader's index: without it every library is searched for.
void copy_loader_cache() {
  constexpr const char* path = "/etc/ld.so.cache";
  unique_fd fd{::open((old_root + path).c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_size > (8 << 20))
    return;  // it is only an index
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  if (::read(fd.get(), bytes.data(), bytes.size()) == info.st_size)
    must(write_file((new_root + path).c_str(), bytes), "write ld.so.cache");
}

/// A small tmpfs becomes the root, with the old root at /old.
void step_aside() {
  constexpr const char* base = "/tmp";
  must(::mount("troupe", base, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") == 0,
       "mount a tmpfs on /tmp");
  must(::chdir(base) == 0, "enter the tmpfs");
  make_directory("old");
  make_directory("new");
  must(::syscall(SYS_pivot_root, ".", "old") == 0, "pivot_root");
  must(::chdir("/") == 0, "enter the new root");
}

void fill_template() {
  must(::mount("troupe", new_root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=0755")
         == 0,
       "mount the template root");
  for (auto* path : directories)
    make_directory(new_root + path);
  for (const auto& b : binds)
    bind_into_root(b.path, b.attributes);
  for (auto* path : top_level)
    add_top_level(path);
  if (std::string prefix = TROUPE_PYTHON_PREFIX; !(prefix + "/").starts_with("/usr/"))
    bind_into_root(prefix, read_only);
  for (const auto& l : links)
    must(::symlink(l.target, (new_root + l.path).c_str()) == 0, "make a link of /dev");
  for (const auto& f : text_files)
    must(write_file((new_root + f.path).c_str(), f.text), "write a file of /etc");
  copy_loader_cache();
}

void move_into_template() {
  auto put_old = new_root + old_root;
  make_directory(put_old);
  must(::syscall(SYS_pivot_root, new_root.c_str(), put_old.c_str()) == 0,
       "pivot into the template");
  must(::chdir("/") == 0, "enter the template");
  must(::umount2(old_root.c_str(), MNT_DETACH) == 0, "let go of the old root");
  must(::rmdir(old_root.c_str()) == 0, "remove the old root's mount point");
  set_attributes("/", read_only, 0);
}

void mount_tmpfs(const char* path, std::uint64_t bytes, unsigned inodes, const char* mode) {
  auto id = std::to_string(worker_id);
  auto options = "size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(inodes)
                 + ",mode=" + mode + ",uid=" + id + ",gid=" + id;
  must(::mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0, path);
}

}  // namespace

void enter_template_root() {
  step_aside();
  fill_template();
  move_into_template();
}

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

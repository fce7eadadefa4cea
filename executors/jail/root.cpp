#include "executors/jail/root.hpp"

#include "executors/jail/sys.hpp"

#include <cstdint>
#include <filesystem>

#include <fcntl.h>
#include <glob.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

namespace fs = std::filesystem;

#ifndef AT_RECURSIVE
constexpr unsigned AT_RECURSIVE = 0x8000;
#endif

// --- what it holds
// ----------------------------------------------------------------------------------

constexpr std::uint64_t read_only = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t device = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
// Not read-only: a sandbox limits its nested user namespaces through it, then covers it.
constexpr std::uint64_t process_files = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

struct bind {
  const char* path;
  std::uint64_t attributes;
};

constexpr bind binds[] = {{"/proc", process_files}, {"/dev/null", device},
                          {"/dev/zero", device},    {"/dev/full", device},
                          {"/dev/random", device},  {"/dev/urandom", device}};

constexpr const char* directories[] = {"/dev", "/etc", "/tmp", "/work"};

/// Of the host, those that are there. Compilers have their parts in other places. Through the links
/// of /etc/alternatives Debian finds its BLAS; its matplotlib insists on a file in /etc.
constexpr const char* host_trees[] = {"/usr/lib/python3*",     "/usr/local/lib/python3*",
                                      "/usr/lib/*-linux-gnu*", "/usr/lib64",
                                      "/usr/lib/locale",       "/usr/share",
                                      "/etc/alternatives",     "/etc/matplotlibrc"};

/// Links into /usr: on a system where they are directories their programs and libraries are bound.
constexpr const char* top_level_libraries[] = {"/lib", "/lib32", "/lib64", "/libx32"};

constexpr const char* program_folders[] = {"/usr/bin", "/bin"};

/// Copied, since a mount each would be copied for every sandbox.
constexpr const char* programs[] = {
  "awk",    "base64", "basename", "bash",    "bunzip2", "bzip2", "cat",      "chmod",
  "cksum",  "cmp",    "comm",     "cp",      "csplit",  "cut",   "date",     "dash",
  "dd",     "df",     "diff",     "dirname", "du",      "echo",  "egrep",    "env",
  "expand", "expr",   "factor",   "false",   "fgrep",   "find",  "fmt",      "fold",
  "grep",   "gunzip", "gzip",     "head",    "id",      "join",  "ln",       "ls",
  "md5sum", "mkdir",  "mkfifo",   "mktemp",  "mv",      "nl",    "nohup",    "nproc",
  "od",     "paste",  "printenv", "printf",  "ps",      "pwd",   "readlink", "realpath",
  "rm",     "rmdir",  "sed",      "seq",     "setsid",  "sh",    "sha1sum",  "sha256sum",
  "shuf",   "sleep",  "sort",     "split",   "stat",    "sum",   "tac",      "tail",
  "tar",    "tee",    "test",     "timeout", "touch",   "tr",    "true",     "truncate",
  "tsort",  "uname",  "unexpand", "uniq",    "unxz",    "wc",    "which",    "xargs",
  "xz",     "yes",    "zcat"};

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

// --- building blocks
// --------------------------------------------------------------------------------

// While the template is built, the old root hangs here and the new one grows there.
const std::string old_root = "/old";
const std::string new_root = "/new";

[[noreturn]] void give_up(const std::string& what) {
  throw setup_error{what, errno};
}

void set_attributes(const std::string& path, std::uint64_t attributes, unsigned flags) {
  mount_attr attr{};
  attr.attr_set = attributes;
  if (::syscall(SYS_mount_setattr, -1, path.c_str(), flags, &attr, sizeof attr) != 0)
    give_up("set mount attributes of " + path);
}

void make_directories(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec)
    throw setup_error{"make " + path + " in the root", ec.value()};
}

/// What a path of the host is, behind its links. Links there are absolute in the host's terms.
fs::path resolve(const std::string& path, int depth = 0) {
  fs::path at = "/";
  for (const auto& part : fs::path{path}.relative_path()) {
    std::error_code ec;
    auto target = fs::read_symlink(old_root + (at / part).string(), ec);
    if (ec || depth > 40)
      at /= part;
    else
      at = resolve((target.is_absolute() ? target : at / target).lexically_normal(), depth + 1);
  }
  return at;
}

/// Binds a tree or file of the host. Throws setup_error: it is not there.
void bind_into_root(const std::string& path, const std::string& target, std::uint64_t attributes) {
  auto from = old_root + resolve(path).string();
  auto to = new_root + target;
  struct stat info {};
  if (::stat(from.c_str(), &info) != 0)
    give_up("find " + path);
  if (S_ISDIR(info.st_mode)) {
    make_directories(to);
  } else {
    make_directories(fs::path{to}.parent_path());
    if (!write_file(to.c_str(), ""))
      give_up("make " + target + " in the root");
  }
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    give_up("bind " + path);
  set_attributes(to, attributes, AT_RECURSIVE);
}

std::vector<std::string> host_paths(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob((old_root + pattern).c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      paths.push_back(std::string{found.gl_pathv[i]}.substr(old_root.size()));
  ::globfree(&found);
  return paths;
}

/// False when there is none, or when it would run as another user.
bool copy_program(const std::string& from, const std::string& to) {
  unique_fd source{::open(from.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (!source || ::fstat(source.get(), &info) != 0 || !S_ISREG(info.st_mode)
      || (info.st_mode & (S_ISUID | S_ISGID)) != 0 || (info.st_mode & S_IXOTH) == 0)
    return false;
  unique_fd copy{::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555)};
  if (!copy)
    return errno == EEXIST;
  for (auto left = info.st_size; left > 0;) {
    auto size = ::sendfile(copy.get(), source.get(), nullptr, static_cast<std::size_t>(left));
    if (size <= 0)
      give_up("copy " + from);
    left -= size;
  }
  return true;
}

bool add_program(const std::string& name) {
  const auto copy = fs::path{new_root} / "usr/bin" / name;
  for (auto* folder : program_folders)
    if (copy_program(old_root + resolve(fs::path{folder} / name).string(), copy))
      return true;
  return false;
}

/// What runs as another user elsewhere has no effect here; better still, it is not there.
void cover_setuid_files(const std::string& tree) {
  std::error_code ec;
  for (fs::recursive_directory_iterator it{new_root + tree, ec}, end; !ec && it != end;
       it.increment(ec)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)
        || (info.st_mode & (S_ISUID | S_ISGID)) == 0)
      continue;
    auto cover = old_root + "/dev/null";
    if (::mount(cover.c_str(), it->path().c_str(), nullptr, MS_BIND, nullptr) != 0)
      give_up("cover " + it->path().string());
  }
}

void make_link(const std::string& target, const std::string& path) {
  if (::symlink(target.c_str(), (new_root + path).c_str()) != 0)
    give_up("make " + path + " in the root");
}

// --- of the host's parts
// ----------------------------------------------------------------------------

void add_top_level(const std::string& path) {
  std::error_code ec;
  if (auto target = fs::read_symlink(old_root + path, ec); !ec)
    make_link(target, path);
  else if (fs::exists(old_root + path, ec))
    bind_into_root(path, path, read_only);
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

/// Where the host has what the root names `path`; the mounts are made later.
std::string host_path(const std::string& path, const std::vector<extra_mount>& mounts) {
  for (const auto& m : mounts)
    if (path.starts_with(m.to + "/"))
      return m.from + path.substr(m.to.size());
  return path;
}

void add_name(const std::string& name, const std::string& program) {
  std::error_code ec;
  if (fs::exists(fs::symlink_status(new_root + name, ec)))
    return;
  make_directories(fs::path{new_root + name}.parent_path());
  make_link(program, name);
}

/// The interpreter, with whatever of its own lies outside the trees above.
void add_python(const root_settings& settings) {
  auto on_host = host_path(settings.python, settings.mounts);
  auto program = resolve(on_host);
  auto prefix = program.parent_path().parent_path();
  if (prefix != "/usr" && prefix != "/")
    bind_into_root(prefix, prefix, read_only);
  else
    bind_into_root(program, program, read_only);
  if (on_host == settings.python)
    add_name(on_host, program);
  add_name("/usr/bin/python3", program);
}

void add_host_parts(const root_settings& settings) {
  for (auto* pattern : host_trees)
    for (const auto& path : host_paths(pattern)) {
      bind_into_root(path, path, read_only);
      if (path.starts_with("/usr/lib"))
        cover_setuid_files(path);
    }
  for (auto* path : top_level_libraries)
    add_top_level(path);
  make_directories(new_root + "/usr/bin");
  make_link("usr/bin", "/bin");
  for (auto* name : programs)
    add_program(name);
  for (const auto& name : settings.programs)
    if (!add_program(name))
      throw setup_error{"there is no program '" + name + "' that a sandbox may have", 0};
  add_python(settings);
  for (const auto& f : text_files)
    must(write_file((new_root + f.path).c_str(), f.text), "write a file of /etc");
  copy_loader_cache();
}

// --- of a root that the user made
// -------------------------------------------------------------------

bool ours(const std::string& name) {
  return name == "proc" || name == "sys" || name == "dev" || name == "tmp" || name == "work";
}

void add_user_root(const std::string& directory) {
  std::error_code ec;
  fs::directory_iterator entries{old_root + resolve(directory).string(), ec};
  if (ec)
    throw setup_error{"open the root " + directory, ec.value()};
  for (const auto& entry : entries) {
    auto name = entry.path().filename().string();
    if (ours(name))
      continue;
    if (entry.is_symlink())
      make_link(fs::read_symlink(entry.path()), "/" + name);
    else
      bind_into_root(fs::path{directory} / name, "/" + name, read_only);
  }
}

// --- the steps
// --------------------------------------------------------------------------------------

/// A small tmpfs becomes the root, with the old root at /old.
void step_aside() {
  constexpr const char* base = "/tmp";
  must(::mount("troupe", base, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") == 0,
       "mount a tmpfs on /tmp");
  must(::chdir(base) == 0, "enter the tmpfs");
  must(::mkdir("old", 0755) == 0 && ::mkdir("new", 0755) == 0, "make the root's mount points");
  must(::syscall(SYS_pivot_root, ".", "old") == 0, "pivot_root");
  must(::chdir("/") == 0, "enter the new root");
}

void fill_template(const root_settings& settings) {
  must(::mount("troupe", new_root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=0755")
         == 0,
       "mount the template root");
  if (settings.directory.empty()) {
    make_directories(new_root + "/etc");
    add_host_parts(settings);
  } else {
    add_user_root(settings.directory);
  }
  for (auto* path : directories)
    make_directories(new_root + path);
  // For what modules write as they are imported; each sandbox mounts its own over it.
  must(::mount("troupe", (new_root + "/tmp").c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
               "size=64m,mode=0755")
         == 0,
       "mount the zygote's /tmp");
  for (const auto& b : binds)
    bind_into_root(b.path, b.path, b.attributes);
  for (const auto& l : links)
    make_link(l.target, l.path);
  for (const auto& m : settings.mounts)
    bind_into_root(m.from, m.to, read_only);
}

void move_into_template() {
  auto put_old = new_root + old_root;
  make_directories(put_old);
  must(::syscall(SYS_pivot_root, new_root.c_str(), put_old.c_str()) == 0,
       "pivot into the template");
  must(::chdir("/") == 0, "enter the template");
  must(::umount2(old_root.c_str(), MNT_DETACH) == 0, "let go of the old root");
  must(::rmdir(old_root.c_str()) == 0, "remove the old root's mount point");
  set_attributes("/", read_only, 0);
}

}  // namespace

void enter_template_root(const root_settings& settings) {
  step_aside();
  fill_template(settings);
  move_into_template();
}

}  // namespace troupe::jail

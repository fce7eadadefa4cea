// troupe-zygote: builds the root that a profile's sandboxes share, and has the Python in it load
// the zygote (zygote.cpp), which goes on in the same process.
//
// Usage (by the runtime only): troupe-zygote KEY=VALUE... with a seqpacket socket at descriptor 3
// and a shared page at 4. Keys: python (its program, as the root names it), import (a module),
// try_import (one that may be missing),
// root (a directory), program (a name), mount (FROM:TO), proxy (its URL in the sandboxes).

#include "executors/jail/hello.hpp"
#include "executors/jail/root.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::jail {
namespace {

/// What Python runs: the module is loaded by its descriptor, and nothing here is left to be seen.
constexpr const char* boot = R"(
import os, sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
_, module, mode, *names = sys.argv
sys.argv, sys.orig_argv = [""], ["python3"]
sys.path.remove("")
loader = ExtensionFileLoader("troupe_zygote", module)
zygote = loader.create_module(ModuleSpec("troupe_zygote", loader, origin=module))
if failed := zygote.load(names):
    sys.exit(failed)
for name in set(os.environ) - {"HOME", "LANG", "PATH", "TMPDIR", "http_proxy", "https_proxy"}:
    del os.environ[name]
sys.exit(zygote.serve(mode))
)";

// Snippets find the first four. Sets and dicts of text iterate in the same order in each sandbox,
// so that a run can be replayed. A zygote with threads could not be forked.
constexpr const char* environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                       "HOME=/work",
                                       "TMPDIR=/tmp",
                                       "LANG=C.UTF-8",
                                       "PYTHONHASHSEED=0",
                                       "OMP_NUM_THREADS=1",
                                       "OPENBLAS_NUM_THREADS=1",
                                       "MKL_NUM_THREADS=1",
                                       "MPLBACKEND=Agg",
                                       "MPLCONFIGDIR=/tmp/matplotlib"};

struct settings {
  root_settings root;
  std::vector<std::string> imports;
  std::string proxy;
};

settings parse(const std::vector<std::string_view>& arguments) {
  settings s;
  s.root.python = TROUPE_PYTHON;
  for (auto text : arguments) {
    auto at = text.find('=');
    auto key = text.substr(0, at);
    std::string value{at == text.npos ? "" : text.substr(at + 1)};
    if (key == "python")
      s.root.python = value;
    else if (key == "root")
      s.root.directory = value;
    else if (key == "program")
      s.root.programs.push_back(value);
    else if (key == "mount")
      s.root.mounts.push_back(
        {value.substr(0, value.find(':')), value.substr(value.find(':') + 1)});
    else if (key == "import")
      s.imports.push_back(value);
    else if (key == "proxy")
      s.proxy = value;
    else if (key == "try_import")
      s.imports.push_back(value + may_be_missing);
    else
      throw setup_error{"unknown setting " + std::string{text}, 0};
  }
  return s;
}

/// The zygote's module lies beside this program. All higher descriptors are closed.
void open_module() {
  auto path = std::filesystem::read_symlink("/proc/self/exe").string() + ".so";
  if (::open(path.c_str(), O_RDONLY) != module_fd)
    throw setup_error{"open " + path, errno};
}

/// A file system of large pages that is mounted nowhere. Without one, or on a kernel that has none,
/// the zygote's memory stays as it is.
void open_store() {
  unique_fd context{static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC))};
  if (!context)
    return;
  ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "huge", "always", 0);
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return;
  unique_fd store{static_cast<int>(
    ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV))};
  context.reset();  // it has the number, as likely as not
  if (store)
    ::dup2(store.get(), store_fd);
}

[[noreturn]] void become_python(const settings& s, privilege mode) {
  std::vector<std::string> arguments{
    s.root.python,  "-sBX", "utf8", "-c", boot, "/proc/self/fd/" + std::to_string(module_fd),
    mode_text(mode)};
  arguments.insert(arguments.end(), s.imports.begin(), s.imports.end());
  std::vector<const char*> argv;
  for (const auto& a : arguments)
    argv.push_back(a.c_str());
  argv.push_back(nullptr);
  std::vector<const char*> variables{std::begin(environment), std::end(environment)};
  auto http = "http_proxy=" + s.proxy;
  auto https = "https_proxy=" + s.proxy;
  if (!s.proxy.empty())
    variables.insert(variables.end(), {http.c_str(), https.c_str()});
  variables.push_back(nullptr);
  ::execve(s.root.python.c_str(), const_cast<char**>(argv.data()),
           const_cast<char**>(variables.data()));
  auto number = errno;
  throw setup_error{"start " + s.root.python
                      + " (the root has no such Python: set the profile's python, or its root)",
                    number};
}

int run(const std::vector<std::string_view>& arguments) {
  ::umask(022);
  try {
    auto s = parse(arguments);
    open_module();
    auto mode = enter_zygote_namespaces();
    open_store();
    enter_template_root(s.root);
    become_python(s, mode);
  } catch (const setup_error& e) {
    send_failure(e);
    return 71;  // EX_OSERR
  }
}

}  // namespace
}  // namespace troupe::jail

int main(int argc, char** argv) {
  return troupe::jail::run({argv + 1, argv + argc});
}

#include "tests/jail/jail_fixture.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

jail_options with_profile(const sandbox_profile& profile) {
  jail_options options;
  options.profiles = {profile};
  return options;
}

error refusal_of(const sandbox_profile& profile) {
  jail_fixture fx{with_profile(profile)};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(take_footprint().children.size() <= 1);  // the zygote, if it came to one
  return s.error();
}

/// A directory with a Python of its own: the host's, copied.
class copied_root {
public:
  copied_root() {
    fs::create_directories(at_ / "usr/bin");
    copy("/usr/bin/python3", "usr/bin/python3");
    auto version = fs::path{fs::canonical("/usr/bin/python3")}.filename().string();
    copy_tree("/usr/lib/" + version);
    for (auto* name : {"lib", "lib64"})
      if (std::error_code ec; fs::is_symlink(fs::path{"/"} / name, ec))
        fs::create_symlink(fs::read_symlink(fs::path{"/"} / name), at_ / name);
    for (auto* library : {"libm.so.6", "libc.so.6", "libz.so.1", "libexpat.so.1", "libseccomp.so.2",
                          "libcrypto.so.3", "libssl.so.3", "libffi.so.8", "libgcc_s.so.1"})
      copy_library(library);
    copy("/lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2");
    std::ofstream{at_ / "mark"} << "mine";
  }
  ~copied_root() { fs::remove_all(at_); }
  copied_root(const copied_root&) = delete;
  copied_root& operator=(const copied_root&) = delete;

  [[nodiscard]] const fs::path& path() const { return at_; }

private:
  void copy(const fs::path& from, const fs::path& to) {
    fs::create_directories((at_ / to).parent_path());
    fs::copy_file(fs::canonical(from), at_ / to);
  }
  void copy_library(const fs::path& name) {
    const fs::path folder = "/usr/lib/x86_64-linux-gnu";
    if (std::error_code ec; fs::exists(folder / name, ec))
      copy(folder / name, (folder / name).relative_path());
  }
  void copy_tree(const fs::path& from) {
    for (const auto& entry : fs::recursive_directory_iterator{from}) {
      auto name = entry.path().string();
      if (entry.is_regular_file() && !entry.is_symlink() && name.find("/test") == name.npos
          && name.find("__pycache__") == name.npos)
        copy(entry.path(), entry.path().relative_path());
    }
  }

  fs::path at_ = fs::temp_directory_path() / ("troupe-root-" + std::to_string(::getpid()));
};

/// A virtual environment with one module.
class environment_of_its_own {
public:
  environment_of_its_own(const std::string& module, const std::string& code) {
    auto version = fs::canonical("/usr/bin/python3").filename().string();
    fs::create_directories(at_ / "bin");
    fs::create_symlink("/usr/bin/python3", at_ / "bin/python3");
    std::ofstream{at_ / "pyvenv.cfg"} << "home = /usr/bin\n";
    fs::create_directories(at_ / "lib" / version / "site-packages");
    std::ofstream{at_ / "lib" / version / "site-packages" / module} << code << "\n";
  }
  ~environment_of_its_own() { fs::remove_all(at_); }
  environment_of_its_own(const environment_of_its_own&) = delete;
  environment_of_its_own& operator=(const environment_of_its_own&) = delete;

  [[nodiscard]] sandbox_profile profile() const {
    sandbox_profile p;
    p.mounts = {{at_, "/opt/mine"}};
    p.python = "/opt/mine/bin/python3";
    return p;
  }

private:
  fs::path at_ = fs::temp_directory_path() / ("troupe-venv-" + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("one executor has sandboxes of several profiles, each with its own zygote",
          "[jail][profile]") {
  jail_options options;
  options.profiles.resize(2);
  options.profiles[1].name = "other";
  options.profiles[1].preload = {"fractions", "sqlite3"};
  jail_fixture fx{options};
  auto plain = fx.open();
  sandbox_spec spec;
  spec.profile = "other";
  auto other = fx.open(spec);
  constexpr auto loaded = "import sys\n'_sqlite3' in sys.modules";
  CHECK(tagged(fx.run(*plain, loaded)) == "false");
  CHECK(tagged(fx.run(*other, loaded)) == "true");
  CHECK(zygotes().size() == 2);
  constexpr auto uid = "open('/proc/self/uid_map').read().split()[4]";
  if (::geteuid() == 0)
    CHECK(tagged(fx.run(*plain, uid)) != tagged(fx.run(*other, uid)));
  spec.profile = "nother";
  auto none = fx.try_open(spec);
  REQUIRE(!none);
  CHECK(none.error().detail == "unknown sandbox profile 'nother' (did you mean 'other'?)");
  CHECK(fx.close(*plain).clean());
  CHECK(fx.close(*other).clean());
}

TEST_CASE("a module that may be missing is loaded ahead where it is", "[jail][profile]") {
  sandbox_profile p;
  p.preload = {"json"};
  p.preload_if_present = {"sqlite3", "no_such_module"};
  jail_fixture fx{with_profile(p)};
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import sys\n'_sqlite3' in sys.modules")) == "true");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a virtual environment's python brings its packages", "[jail][profile]") {
  environment_of_its_own env{"mine.py", "answer = 42"};
  auto p = env.profile();
  p.preload = {"mine"};
  jail_fixture fx{with_profile(p)};
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "import mine\nmine.answer")) == "42");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a module that starts a thread cannot be loaded ahead", "[jail][profile]") {
  environment_of_its_own env{
    "threaded.py", "import threading, time\n"
                   "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"};
  auto p = env.profile();
  p.preload = {"threaded"};
  auto e = refusal_of(p);
  CHECK(e.code == errc::unavailable);
  CHECK(e.detail.find("has started a thread") != std::string::npos);
}

TEST_CASE("the root has the usual programs, those of the profile, and no compiler",
          "[jail][profile]") {
  sandbox_profile p;
  p.programs = {"openssl"};
  jail_fixture fx{with_profile(p)};
  auto s = fx.open();
  auto which = [&](const std::string& name) {
    return tagged(fx.run(*s, "import shutil\nshutil.which('" + name + "') is not None"));
  };
  for (auto* name :
       {"sh", "bash", "ls", "grep", "sed", "awk", "tar", "gzip", "python3", "openssl"}) {
    INFO(name);
    CHECK(which(name) == "true");
  }
  for (auto* name : {"gcc", "cc", "g++", "ld", "as", "su", "mount", "sudo", "passwd", "curl"}) {
    INFO(name);
    CHECK(which(name) == "false");
  }
  CHECK(tagged(fx.run(*s, R"(
import os, stat
found = []
for folder, _, names in os.walk("/"):
    if folder.startswith("/proc"):
        continue
    for name in names:
        try:
            mode = os.lstat(os.path.join(folder, name)).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(name)
found)"))
        == "[]");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("a mount of the profile can be read and not written", "[jail][profile]") {
  auto folder = fs::temp_directory_path() / ("troupe-mount-" + std::to_string(::getpid()));
  fs::create_directories(folder / "deep");
  std::ofstream{folder / "deep/data.csv"} << "1,2";
  sandbox_profile p;
  p.mounts = {{folder, "/data/mine"}};
  jail_fixture fx{with_profile(p)};
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "open('/data/mine/deep/data.csv').read()")) == "\"1,2\"");
  auto o = fx.run(*s, "open('/data/mine/deep/data.csv', 'w')");
  REQUIRE(o.error);
  CHECK(o.error->type == "OSError");
  CHECK(fx.close(*s).clean());
  fs::remove_all(folder);
}

TEST_CASE("a directory of the user can be the root", "[jail][profile]") {
  copied_root root;
  sandbox_profile p;
  p.root = root.path();
  p.python = "/usr/bin/python3";
  jail_fixture fx{with_profile(p)};
  auto s = fx.open();
  CHECK(tagged(fx.run(*s, "open('/mark').read()")) == "\"mine\"");
  CHECK(tagged(fx.run(*s, "import os\nsorted(os.listdir('/usr/bin'))")) == "[\"python3\"]");
  CHECK(tagged(fx.run(*s, "open('x', 'w').write('1')\nos.path.exists('/work/x')")) == "true");
  auto o = fx.run(*s, "open('/mark', 'w')");
  REQUIRE(o.error);
  CHECK(fx.close(*s).clean());
}

TEST_CASE("what a profile asks for in vain is said before there is a sandbox", "[jail][profile]") {
  sandbox_profile p;
  p.programs = {"no-such-program"};
  CHECK(refusal_of(p).detail.find("'no-such-program'") != std::string::npos);
  p = {};
  p.python = "/usr/bin/python9";
  CHECK(refusal_of(p).detail.find("/usr/bin/python9") != std::string::npos);
  p = {};
  p.mounts = {{"/no/such/directory", "/data"}};
  CHECK(refusal_of(p).detail.find("/no/such/directory") != std::string::npos);
  p = {};
  auto empty = fs::temp_directory_path() / ("troupe-empty-" + std::to_string(::getpid()));
  fs::create_directories(empty);
  p.root = empty;
  p.python = "/usr/bin/python3";
  CHECK(refusal_of(p).detail.find("start /usr/bin/python3") != std::string::npos);
  fs::remove_all(empty);
}

TEST_CASE("a layer that is required and missing is named, and nothing runs", "[jail][profile]") {
  sandbox_profile p;
  p.required = {isolation_layer::cgroups, isolation_layer::landlock, isolation_layer::proc,
                isolation_layer::nesting_limit, isolation_layer::host_uids};
  jail_fixture fx{with_profile(p)};
  auto s = fx.try_open();
  auto missing = fx.jail->info().missing;
  if (s) {
    CHECK(missing.empty());
    CHECK(fx.close(**s).clean());
  } else {
    INFO(s.error().detail);
    CHECK(!missing.empty());
    CHECK(s.error().code == errc::unavailable);
    CHECK(s.error().detail.find("requires ") != std::string::npos);
  }
}

TEST_CASE("Landlock forbids what a wrong mount would allow", "[jail][profile]") {
  jail_fixture fx;
  auto s = fx.open();
  auto info = fx.jail->info();
  if (info.isolation.find("Landlock") == std::string::npos)
    SKIP("this kernel has no Landlock");
  // /dev/full may be written, /dev/urandom may not: its mount alone would allow it.
  CHECK(tagged(fx.run(*s, R"(
def writes(path):
    try:
        open(path, "wb", buffering=0).close()
        return True
    except PermissionError:
        return False
[writes(p) for p in ("/dev/null", "/dev/urandom", "/work/x", "/tmp/x")])"))
        == "[true,false,true,true]");
  CHECK(fx.close(*s).clean());
}

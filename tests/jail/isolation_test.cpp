#include "executors/jail/cgroup.hpp"
#include "tests/jail/jail_fixture.hpp"

#include <filesystem>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_CASE("what separates a sandbox from the host is told", "[jail][isolation]") {
  jail_fixture fx;
  CHECK(fx.jail->info().isolation.empty());
  auto s = fx.open();
  auto info = fx.jail->info();
  CHECK(info.name == "jail");
  CHECK(info.python.starts_with("3."));
  CHECK(info.isolation == s->isolation());
  CHECK(info.isolation.find("seccomp") != std::string::npos);
  CHECK((::geteuid() == 0) == (info.isolation.find("host uids of its own") != std::string::npos));
  auto groups = jail::cgroup_tree::probe().kind() != jail::cgroup_kind::none;
  CHECK(groups == (info.isolation.find("cgroup v") != std::string::npos));
  CHECK(info.missing.size() == (groups ? 0u : 1u) + (::geteuid() == 0 ? 0u : 1u));
}

TEST_CASE("a fork bomb stays within its limit and dies with the sandbox", "[jail][isolation]") {
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.processes = 20;
  auto s = fx.open(spec);
  auto other = fx.open(spec);
  auto o = fx.run(*s, R"(
import os, time
n = 0
try:
  while True:
    if os.fork() == 0: time.sleep(100)
    n += 1
except BlockingIOError:
  pass
n
)");
  // Without root, the sandbox's first process has the same user and counts too.
  CHECK(tagged(o) == (::geteuid() == 0 ? "19" : "18"));
  CHECK(tagged(fx.run(*other, "import subprocess\nsubprocess.run(['true']).returncode")) == "0");
  CHECK(fx.close(*s).clean());
}

TEST_CASE("the same walls stand without root", "[jail][isolation][rootless]") {
  if (::geteuid() != 0)
    SUCCEED("the other cases run without root already");
  else {
    constexpr int unreachable = 5;
    // A reactor's thread does not survive a fork: the child starts from a clean state.
    auto child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0
          || ::setresuid(65534, 65534, 65534) != 0)
        ::_exit(3);
      auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
      if (::access((here / "troupe-zygote").c_str(), X_OK) != 0)
        ::_exit(unreachable);
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else /proc/self belongs to root
      ::execl("/proc/self/exe", "jail_test", "[jail]~[rootless]", static_cast<char*>(nullptr));
      ::_exit(4);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == unreachable)
      SKIP("the build folder is closed to other users");
    CHECK(WEXITSTATUS(status) == 0);
  }
}

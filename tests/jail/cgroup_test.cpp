#include "executors/jail/cgroup.hpp"
#include "executors/jail/sandbox_group.hpp"
#include "tests/jail/jail_fixture.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::jail;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

void need_groups() {
  if (auto tree = cgroup_tree::probe(); tree.kind() == cgroup_kind::none)
    SKIP("no control groups here: " + tree.why());
}

sandbox_spec with_memory(std::uint64_t mib) {
  sandbox_spec spec;
  spec.limits.memory_bytes = mib << 20;
  return spec;
}

/// A process in the group that has used 10 MiB and some time, and waits. With `file` the memory is
/// in that, and stays.
pid_t join_and_work(const cgroup& group, int file = -1) {
  int ready[2];
  auto entry = group.entry();
  if (!entry || ::pipe(ready) != 0)
    throw std::runtime_error{"no group to enter"};
  auto child = ::fork();
  if (child == 0) {
    for (const auto& tasks : entry->tasks)
      if (::write(tasks.get(), "0", 1) != 1)
        ::_exit(1);
    std::string bytes(10u << 20, 'x');
    if (file >= 0)
      static_cast<void>(::write(file, bytes.data(), bytes.size()));
    for (volatile int i = 0; i < 20'000'000;)
      i = i + 1;
    static_cast<void>(::write(ready[1], "r", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  static_cast<void>(::read(ready[0], &byte, 1));
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

/// The kernel lets go of a group a moment after its last process.
bool eventually(const std::function<bool()>& done) {
  for (int i = 0; i < 1'000; ++i, std::this_thread::sleep_for(1ms))
    if (done())
      return true;
  return false;
}

/// A directory with a name of its own, removed with its owner.
class temp_folder {
public:
  temp_folder() {
    char name[] = "/tmp/troupe-groups-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~temp_folder() { fs::remove_all(path); }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream{path / name} << text;
  }
  [[nodiscard]] std::string read(const fs::path& file) const {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  fs::path path;
};

/// A machine whose only hierarchy is version 2, made of plain files.
class plain_v2 : public temp_folder {
public:
  plain_v2() {
    write("mountinfo", "31 23 0:28 / " + (path / "groups").string() + " rw - cgroup2 cgroup2 rw\n");
    write("membership", "0::/job\n");
    write("groups/job/cgroup.controllers", "cpuset cpu io memory pids\n");
    write("groups/job/cgroup.procs", std::to_string(::getpid()) + "\n");
  }
  [[nodiscard]] cgroup_paths paths() const {
    return {(path / "mountinfo").string(), (path / "membership").string()};
  }
};

}  // namespace

TEST_CASE("processes that together use more memory than allowed end their sandbox",
          "[jail][cgroup]") {
  need_groups();
  jail_fixture fx;
  auto s = fx.open(with_memory(200));
  auto other = fx.open();
  auto o = fx.run(*s, R"(
import os, time
for _ in range(20):
  if os.fork() == 0:
    hog = bytearray(b'x') * (40 << 20)
    time.sleep(60)
time.sleep(60)
)");
  CHECK(o.end == snippet_end::memory);
  CHECK(o.reason == "the code used more than the 200 MiB of memory that are allowed");
  CHECK(o.usage.max_rss_bytes > 150u << 20);
  auto report = fx.close(*s);
  CHECK(report.clean());
  CHECK(report.teardown < 2s);
  CHECK(tagged(fx.run(*other, "1 + 1")) == "2");
}

TEST_CASE("files in /work and /tmp count as memory", "[jail][cgroup]") {
  need_groups();
  jail_fixture fx;
  auto spec = with_memory(160);
  spec.limits.work_bytes = 1u << 30;
  spec.limits.file_bytes = 1u << 30;
  auto s = fx.open(spec);
  auto o = fx.run(*s, "f = open('big', 'wb')\nfor _ in range(1000): f.write(b'x' * (1 << 20))");
  CHECK(o.end == snippet_end::memory);
}

TEST_CASE("what a snippet used is counted by the kernel, its children's part too",
          "[jail][cgroup]") {
  need_groups();
  jail_fixture fx;
  auto s = fx.open();
  auto o = fx.run(*s, R"(
import subprocess
subprocess.run(['sh', '-c', 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'])
hog = bytearray(b'x') * (100 << 20)
del hog
)");
  CHECK(describe(o) == "ok");
  CHECK(o.usage.cpu > 50ms);
  CHECK(o.usage.max_rss_bytes > 100u << 20);
  auto next = fx.run(*s, "1 + 1");
  CHECK(next.usage.cpu < o.usage.cpu);
  CHECK(next.usage.max_rss_bytes < 60u << 20);
  auto life = fx.close(*s);
  CHECK(life.cpu >= o.usage.cpu + next.usage.cpu);
  CHECK(life.peak_memory_bytes > 0);
}

TEST_CASE("a share of the processor is a limit", "[jail][cgroup]") {
  need_groups();
  jail_fixture fx;
  sandbox_spec spec;
  spec.limits.cpus = 0.2;
  auto s = fx.open(spec);
  auto o =
    fx.run(*s, "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass");
  CHECK(describe(o) == "ok");
  CHECK(o.usage.cpu < 800ms);
}

TEST_CASE("groups of a runtime that died are swept, those in use and of the living are not",
          "[jail][cgroup]") {
  need_groups();
  auto tree = cgroup_tree::probe();
  auto alive = tree.make();
  REQUIRE(alive->create({256u << 20, 10, 0}));
  auto child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  // Beside our own: named as a runtime that cannot have lived.
  auto entry = alive->entry();
  REQUIRE(entry);
  std::vector<fs::path> dead;
  for (const auto& fd : entry->tasks) {
    auto file = fs::read_symlink("/proc/self/fd/" + std::to_string(fd.get()));
    auto mine = file.parent_path().parent_path();
    auto place = mine.parent_path() / ("troupe." + std::to_string(::getpid()) + ".1.7");
    fs::create_directories(place / "1");
    dead.push_back(place);
  }
  std::ofstream{dead[0] / "1" / "cgroup.procs"} << child;
  auto found = find_cgroup_leftovers();
  CHECK(found.size() >= dead.size());
  sweep_cgroups(found);
  CHECK(fs::exists(dead[0]));
  for (std::size_t i = 1; i < dead.size(); ++i)
    CHECK(!fs::exists(dead[i]));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  sweep_cgroups(find_cgroup_leftovers());
  CHECK(!fs::exists(dead[0]));
  CHECK(alive->entry());
  CHECK(alive->remove());
}

TEST_CASE("an empty group is kept for the next sandbox with its limits, and counts from zero",
          "[jail][cgroup]") {
  need_groups();
  auto tree = cgroup_tree::probe();
  if (tree.kind() != cgroup_kind::hybrid)
    SKIP("groups of version 2 are made anew");
  constexpr cgroup_limits limits{256u << 20, 10, 0};
  auto group = tree.make();
  REQUIRE(group->create(limits));
  auto member = join_and_work(*group);
  CHECK(!tree.give_back(group, limits));  // there is a process in it
  ::kill(member, SIGKILL);
  ::waitpid(member, nullptr, 0);
  CHECK(group->cpu() > 1ms);
  CHECK(group->peak_memory_bytes() > 8u << 20);
  REQUIRE(eventually([&] { return tree.give_back(group, limits); }));
  CHECK(tree.take_spare({128u << 20, 10, 0}) == nullptr);
  group = tree.take_spare(limits);
  REQUIRE(group);
  CHECK(tree.take_spare(limits) == nullptr);
  CHECK(group->cpu() == 0us);
  CHECK(group->peak_memory_bytes() <= 1u << 20);
  member = join_and_work(*group);
  ::kill(member, SIGKILL);
  ::waitpid(member, nullptr, 0);
  CHECK(eventually([&] { return group->remove(); }));
}

TEST_CASE("a group that could not be given all its limits serves nobody", "[jail][cgroup]") {
  need_groups();
  auto tree = cgroup_tree::probe();
  sandbox_limits limits;
  limits.cpus = 0.001;  // less than the kernel takes
  sandbox_group group;
  REQUIRE(!group.create(tree, limits, -1));
  CHECK(group.end());
  for (std::uint32_t more = 0; more < 8; ++more)
    CHECK(tree.take_spare({limits.memory_bytes, limits.processes + more, limits.cpus}) == nullptr);
}

TEST_CASE("a group whose dead have left memory behind serves nobody else", "[jail][cgroup]") {
  need_groups();
  auto tree = cgroup_tree::probe();
  constexpr cgroup_limits limits{256u << 20, 10, 0};
  auto group = tree.make();
  REQUIRE(group->create(limits));
  unique_fd file{::memfd_create("left", MFD_CLOEXEC)};
  auto member = join_and_work(*group, file.get());
  ::kill(member, SIGKILL);
  ::waitpid(member, nullptr, 0);
  REQUIRE(eventually([&] { return tree.give_back(group, limits); }));
  CHECK(tree.take_spare(limits) == nullptr);
}

TEST_CASE("a version 2 group gets its limits by the names of version 2", "[jail][cgroup]") {
  plain_v2 machine;
  auto tree = cgroup_tree::probe(machine.paths());
  REQUIRE(tree.kind() == cgroup_kind::v2);
  CHECK(machine.read(machine.path / "groups/job/cgroup.subtree_control") == "+memory +pids +cpu");
  auto group = tree.make();
  REQUIRE(group->create({1000, 20, 1.5}));
  fs::path made;
  for (const auto& entry : fs::directory_iterator{machine.path / "groups/job"})
    if (entry.is_directory())
      made = entry.path() / "1";
  CHECK(machine.read(made / "memory.max") == "1000");
  CHECK(machine.read(made / "memory.oom.group") == "1");
  CHECK(machine.read(made / "pids.max") == "20");
  CHECK(machine.read(made / "cpu.max") == "150000 100000");
  auto entry = group->entry();
  REQUIRE(entry);
  CHECK(entry->tasks.empty());
  CHECK(entry->into);
  std::ofstream{made / "cpu.stat"} << "usage_usec 42\nuser_usec 40\n";
  std::ofstream{made / "memory.events"} << "low 0\noom 1\noom_kill 3\n";
  std::ofstream{made / "memory.peak"} << "12345\n";
  CHECK(group->cpu() == 42us);
  CHECK(group->oom_kills() == 3);
  CHECK(group->peak_memory_bytes() == 12345);
}

TEST_CASE("what is missing for control groups is named", "[jail][cgroup]") {
  temp_folder machine;
  machine.write("mountinfo", "31 23 0:28 / " + machine.path.string() + " rw - tmpfs tmpfs rw\n");
  machine.write("membership", "");
  auto tree = cgroup_tree::probe(
    {(machine.path / "mountinfo").string(), (machine.path / "membership").string()});
  CHECK(tree.kind() == cgroup_kind::none);
  CHECK(tree.why() == "no hierarchy with the memory, pids, cpu and cpuacct controllers is mounted");
}

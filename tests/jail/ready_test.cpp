#include "tests/jail/jail_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

jail_options with_ready(std::size_t n) {
  jail_options options;
  options.profiles.front().ready = n;
  return options;
}

/// Until the jail has `n` children beside its zygote, or patience ends.
bool wait_for_children(std::size_t n) {
  for (int i = 0; i < 2'000; ++i) {
    if (take_footprint().children.size() == n + 1)
      return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

}  // namespace

TEST_CASE("sandboxes are made ahead, used, and made again", "[jail][ready]") {
  jail_fixture fx{with_ready(3)};
  auto first = fx.open();
  REQUIRE(wait_for_children(1 + 3));
  sandbox_spec spec;
  spec.tools = {make_tool("echo", {"x"})};
  spec.files = {{"data.txt", "hello"}};
  auto second = fx.open_with({{"echo", [](const json& a) { return a.at("x"); }}}, spec);
  CHECK(tagged(fx.run(*second, "echo(open('data.txt').read())")) == "\"hello\"");
  CHECK(wait_for_children(2 + 3));
  CHECK(fx.jail->stats().live == 2);
  CHECK(fx.close(*first).clean());
  CHECK(fx.close(*second).clean());
}

TEST_CASE("with little memory left no sandbox is made ahead", "[jail][ready]") {
  auto options = with_ready(3);
  auto memory = std::make_shared<std::atomic<std::uint64_t>>(spare_memory_bytes - 1);
  options.memory = [memory] { return memory->load(); };
  jail_fixture fx{options};
  auto first = fx.open();
  fx.pause(100ms);
  CHECK(take_footprint().children.size() == 1 + 1);
  *memory = spare_memory_bytes;
  auto second = fx.open();
  CHECK(wait_for_children(2 + 3));
}

TEST_CASE("a sandbox made ahead has nothing of the one before", "[jail][ready]") {
  jail_fixture fx{with_ready(2)};
  auto s = fx.open();
  CHECK(describe(fx.run(*s, "x = 1\nopen('f', 'w').write('secret')")) == "ok");
  REQUIRE(wait_for_children(1 + 2));
  auto t = fx.open();
  CHECK(describe(fx.run(*t, "x")) == "raised NameError: name 'x' is not defined");
  CHECK(tagged(fx.run(*t, "import os\nos.listdir('/work')")) == "[]");
}

TEST_CASE("a module that came as a file is not taken to be installed", "[jail][ready]") {
  jail_fixture fx{with_ready(2)};
  sandbox_spec spec;
  spec.imports = {"helper"};
  spec.files = {{"helper.py", "x = 7"}};
  for (int i = 0; i < 2; ++i)
    CHECK(tagged(fx.run(*fx.open(spec), "import helper\nhelper.x")) == "7");
  spec.files.clear();
  REQUIRE(wait_for_children(2));
  auto t = fx.try_open(spec);
  REQUIRE(!t);
  CHECK(t.error().detail.find("not installed in the sandbox: helper") != std::string::npos);
  spec.imports = {"math"};
  for (int i = 0; i < 3; ++i) {  // the later ones are opened without a word from the worker
    REQUIRE(wait_for_children(2));
    CHECK(tagged(fx.run(*fx.open(spec), "import math\nmath.floor(2.5)")) == "2");
  }
}

TEST_CASE("one made ahead that does not fit or has died is not used", "[jail][ready]") {
  jail_fixture fx{with_ready(2)};
  auto s = fx.open();
  REQUIRE(wait_for_children(1 + 2));
  sandbox_spec spec;
  spec.limits.processes = 10;
  auto t = fx.open(spec);
  CHECK(tagged(fx.run(*t, "import resource\nresource.getrlimit(resource.RLIMIT_NPROC)[0]"))
        == "10");
  REQUIRE(wait_for_children(2 + 2));
  std::vector<int> killed;
  for (auto pid : take_footprint().children)
    if (is_first_process(pid))
      killed.push_back(pid);
  for (auto pid : killed)
    ::kill(pid, SIGKILL);
  // One that dies in the very moment of its opening is another case.
  for (auto pid : killed)
    for (int i = 0; i < 2'000 && is_first_process(pid); ++i)
      std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 5; ++i)
    CHECK(tagged(fx.run(*fx.open(spec), "1 + 1")) == "2");
}

#include "executors/process/sweep.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace troupe::process;

namespace fs = std::filesystem;

namespace {

std::string new_directory() {
  auto name = (fs::temp_directory_path() / "troupe-sweep-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  return name;
}

}  // namespace

TEST_CASE("a tree goes with all that is in it, and no link leads out", "[sweep]") {
  auto outside = new_directory();
  std::ofstream{outside + "/kept"} << "x";
  auto tree = new_directory();
  fs::create_directories(tree + "/a/b/c");
  std::ofstream{tree + "/a/b/f"} << "x";
  fs::create_symlink(outside, tree + "/link");
  fs::create_symlink("nowhere", tree + "/a/dangling");
  fs::create_hard_link(outside + "/kept", tree + "/hard");
  REQUIRE(::mkfifo((tree + "/fifo").c_str(), 0600) == 0);
  CHECK(remove_tree(tree));
  CHECK(!fs::exists(tree));
  CHECK(fs::exists(outside + "/kept"));
  fs::remove_all(outside);
}

TEST_CASE("modes keep nothing from being removed", "[sweep]") {
  auto tree = new_directory();
  fs::create_directories(tree + "/locked/inner");
  std::ofstream{tree + "/locked/inner/f"} << "x";
  REQUIRE(::chmod((tree + "/locked/inner").c_str(), 0) == 0);
  REQUIRE(::chmod((tree + "/locked").c_str(), 0) == 0);
  CHECK(remove_tree(tree));
  CHECK(!fs::exists(tree));
}

TEST_CASE("a tree deeper than any path is removed", "[sweep]") {
  auto tree = new_directory();
  auto at = ::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string name(100, 'd');
  for (int depth = 0; depth < 300; ++depth) {  // 30 000 bytes of path
    REQUIRE(::mkdirat(at, name.c_str(), 0700) == 0);
    auto inner = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = inner;
  }
  ::close(at);
  CHECK(remove_tree(tree));
  CHECK(!fs::exists(tree));
}

TEST_CASE("a tree that somebody has removed before is gone", "[sweep]") {
  CHECK(remove_tree("/nowhere/at/all"));
}

// What is special to the process executor; the rest is in contract/.

#include "executors/process/process_executor.hpp"
#include "tests/support/executor_fixture.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

namespace {

namespace fs = std::filesystem;

/// A directory for the sandboxes of one test, which must be empty at its end.
struct scratch {
  scratch() {
    auto name = (fs::temp_directory_path() / "troupe-process-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~scratch() {
    CHECK(fs::is_empty(path));
    fs::remove_all(path);
  }
  fs::path path;
};

error open_error(process_options options) {
  scratch dir;
  if (options.directory.empty())
    options.directory = dir.path;
  executor_fixture fx{[&](reactor& r) { return std::make_unique<process_executor>(r, options); }};
  auto s = fx.try_open();
  REQUIRE(!s);
  CHECK(fx.backend->stats().open_failures == 1);
  CHECK(fx.backend->stats().unclean_closes == 0);
  return s.error();
}

fs::path write_script(const fs::path& path, const std::string& text) {
  std::ofstream{path} << "#!/bin/sh\n" << text << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

}  // namespace

TEST_CASE("a python that is not there is named", "[process]") {
  auto e = open_error({.python = "no-such-python"});
  CHECK(e.code == errc::unavailable);
  CHECK(e.detail == "there is no 'no-such-python' on PATH: install Python 3.10 or newer");
  CHECK(open_error({.python = "/nowhere/python3"}).detail
        == "the sandbox cannot be set up: start /nowhere/python3: No such file or directory");
}

TEST_CASE("a keeper that is not there is named, and leaves no directory", "[process]") {
  auto e = open_error({.keeper_path = "/nowhere/troupe-keeper"});
  CHECK(e.code == errc::unavailable);
  CHECK(e.detail == "cannot start /nowhere/troupe-keeper: No such file or directory");
}

TEST_CASE("a directory that cannot be written is named", "[process]") {
  auto e = open_error({.directory = "/nowhere"});
  CHECK(e.code == errc::unavailable);
  CHECK(e.detail
        == "make a directory in /nowhere (set TMPDIR to one that can be written): "
           "No such file or directory");
}

TEST_CASE("a program that is no python fails the open with its own words", "[process]") {
  scratch dir;
  auto script = write_script(dir.path / "python", "echo this is no snake >&2; exit 3");
  auto e = open_error({.python = script});
  CHECK(e.code == errc::unavailable);
  CHECK(e.detail
        == script.string() + " ended with exit status 3 before it was ready: this is no snake");
  fs::remove(script);
}

TEST_CASE("a program that never speaks times out", "[process]") {
  scratch dir;
  auto script = write_script(dir.path / "python", "sleep 600");
  {
    executor_fixture fx{[&](reactor& r) {
      return std::make_unique<process_executor>(
        r, process_options{.python = script, .directory = dir.path});
    }};
    sandbox_spec spec;
    spec.limits.open_timeout = millis{300};
    auto s = fx.try_open(spec);
    REQUIRE(!s);
    CHECK(s.error().code == errc::timeout);
  }
  fs::remove(script);
}

TEST_CASE("a python that is a script of many words still has a clean environment", "[process]") {
  scratch dir;
  auto script = write_script(dir.path / "python3",
                             "export SNAKE=1 PATH=/elsewhere\nexec /usr/bin/python3 \"$@\"");
  {
    executor_fixture fx{[&](reactor& r) {
      return std::make_unique<process_executor>(
        r, process_options{.python = script, .directory = dir.path});
    }};
    for (int i = 0; i < 2; ++i)
      CHECK(tagged(fx.run(*fx.open(), "import os\n[sorted(os.environ), os.environ['PATH']]"))
            == R"([["HOME","LANG","PATH","TMPDIR"],"/usr/bin:/usr/local/bin:/usr/bin:/bin"])");
  }
  fs::remove(script);
}

TEST_CASE("the directory of a process sandbox is its owner's alone", "[process]") {
  scratch dir;
  executor_fixture fx{[&](reactor& r) {
    return std::make_unique<process_executor>(r, process_options{.directory = dir.path});
  }};
  auto s = fx.open();
  auto own = fs::directory_iterator {
    dir.path
  } -> path();
  CHECK((fs::status(own).permissions() & fs::perms::mask) == fs::perms::owner_all);
  CHECK(tagged(fx.run(*s, "import os\nos.getcwd()")) == "\"" + (own / "work").string() + "\"");
  CHECK(fx.close(*s).clean());
  CHECK(!fs::exists(own));
  fx.backend.reset();
}

TEST_CASE("what the level of the process executor is stands in its info", "[process]") {
  executor_fixture fx{[](reactor& r) { return std::make_unique<process_executor>(r); }};
  auto info = fx.backend->info();
  CHECK(info.name == "process");
  CHECK(info.isolation.starts_with("none: "));
  CHECK(info.missing.size() >= 5);
  CHECK(!info.abilities.isolated);
  CHECK(!info.abilities.network_none);
}

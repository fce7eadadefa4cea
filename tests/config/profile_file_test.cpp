#include "config/profile_file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe;

namespace {

profile_settings read(std::string_view text) {
  auto p = parse_profile(text, "mine", "mine.yaml");
  INFO((p ? "" : p.error().detail));
  REQUIRE(p);
  return *p;
}

std::string refusal(std::string_view text) {
  auto p = parse_profile(text, "mine", "mine.yaml");
  REQUIRE(!p);
  CHECK(p.error().code == errc::invalid_argument);
  return p.error().detail;
}

}  // namespace

TEST_CASE("every shipped profile can be read", "[profile]") {
  CHECK(shipped_profiles() == std::vector<std::string_view>{"data", "default", "shell", "tight"});
  for (auto name : shipped_profiles()) {
    auto p = find_profile(std::string{name});
    INFO(name);
    REQUIRE(p);
    CHECK(p->profile.name == name);
    CHECK(!p->description.empty());
    CHECK(!p->profile.network);
  }
}

TEST_CASE("the default profile is what holds without one", "[profile]") {
  auto shipped = find_profile("default");
  REQUIRE(shipped);
  auto empty = read("");
  CHECK(shipped->limits == empty.limits);
  CHECK(shipped->limits == sandbox_limits{});
  CHECK(shipped->profile.ready == empty.profile.ready);
  CHECK(shipped->profile.preload == empty.profile.preload);
  CHECK(shipped->imports.empty());
  CHECK(shipped->checkpoints);
}

TEST_CASE("a profile says what its sandboxes hold and may do", "[profile]") {
  auto p = read(R"(
description: mine
programs: [git, jq]
mounts: ["/usr/share:/data/share", /usr/lib]
preload: [json]
preload_if_present: [numpy]
ready: 9
imports: [json, "os.*"]
network: ["pypi.org:443", "*.example.com:80"]
require: [cgroups, landlock]
checkpoints: false
memory: 256MiB
cpus: 1.5
processes: 8
open_files: 40
file_size: 1MiB
work_size: 2MiB
tmp_size: 3MiB
output_size: 4KiB
shown_output: 1KiB
tool_calls: 5
open_timeout: 2s
)");
  CHECK(p.description == "mine");
  CHECK(p.profile.programs == std::vector<std::string>{"git", "jq"});
  CHECK(p.profile.mounts
        == std::vector<profile_mount>{{"/usr/share", "/data/share"}, {"/usr/lib", "/usr/lib"}});
  CHECK(p.profile.preload == std::vector<std::string>{"json"});
  CHECK(p.profile.preload_if_present == std::vector<std::string>{"numpy"});
  CHECK(p.profile.ready == 9);
  REQUIRE(p.profile.network);
  CHECK(p.profile.network->rules.size() == 2);
  CHECK(p.profile.required == std::vector{isolation_layer::cgroups, isolation_layer::landlock});
  auto spec = p.spec();
  CHECK(spec.profile == "mine");
  CHECK(spec.imports == std::vector<std::string>{"json", "os.*"});
  CHECK(!spec.checkpoints);
  CHECK(spec.limits.memory_bytes == 256u << 20);
  CHECK(spec.limits.cpus == 1.5);
  CHECK(spec.limits.processes == 8);
  CHECK(spec.limits.open_files == 40);
  CHECK(spec.limits.file_bytes == 1u << 20);
  CHECK(spec.limits.work_bytes == 2u << 20);
  CHECK(spec.limits.tmp_bytes == 3u << 20);
  CHECK(spec.limits.output_bytes == 4'096);
  CHECK(spec.limits.shown_bytes == 1'024);
  CHECK(spec.limits.tool_calls == 5);
  CHECK(spec.limits.open_timeout == millis{2'000});
}

TEST_CASE("what a profile may not say is refused with its line and the mend", "[profile]") {
  CHECK(refusal("memory: 1GiB\nmemroy: 1GiB")
          .find("line 2: unknown key 'memroy' (did you mean "
                "'memory'?)")
        != std::string::npos);
  CHECK(refusal("memory: 1GiB\nmemory: 2GiB").find("twice") != std::string::npos);
  CHECK(refusal("memory: 1MiB").find("line 1") != std::string::npos);
  CHECK(refusal("memory: much").find("'much'") != std::string::npos);
  CHECK(refusal("processes: 0").find("from 4 to") != std::string::npos);
  CHECK(refusal("require: [cgroup]").find("did you mean 'cgroups'") != std::string::npos);
  CHECK(refusal("root: /no/such/directory").find("root: '/no/such/directory'")
        != std::string::npos);
  CHECK(refusal("root: usr").find("absolute") != std::string::npos);
  CHECK(refusal("python: python3").find("absolute") != std::string::npos);
  CHECK(refusal("mounts: [data]").find("'data'") != std::string::npos);
  CHECK(refusal("mounts: ['/usr:/../etc']").find("FROM:TO") != std::string::npos);
  for (auto* own : {"/proc", "/dev/null", "/work", "/tmp/x", "/old/", "/./proc", "//work", "/."}) {
    INFO(own);
    CHECK(refusal("mounts: ['/usr:" + std::string{own} + "']").find("mount /usr elsewhere")
          != std::string::npos);
  }
  CHECK(refusal("mounts: [/no/such/directory]").find("is not there") != std::string::npos);
  CHECK(refusal("network: ['http://pypi.org']").find("network:") != std::string::npos);
  CHECK(refusal("- a").find("expected") != std::string::npos);
}

TEST_CASE("a profile is found by its name or its path", "[profile]") {
  auto typo = find_profile("defualt");
  REQUIRE(!typo);
  CHECK(typo.error().code == errc::not_found);
  CHECK(typo.error().detail.find("did you mean 'default'") != std::string::npos);
  auto missing = find_profile("./none.yaml");
  REQUIRE(!missing);
  CHECK(missing.error().detail.find("./none.yaml") != std::string::npos);

  auto path = std::filesystem::temp_directory_path()
              / ("troupe-profile-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream{path} << "memory: 512MiB\n";
  auto mine = find_profile(path);
  std::filesystem::remove(path);
  REQUIRE(mine);
  CHECK(mine->profile.name == path.stem());
  CHECK(mine->limits.memory_bytes == 512u << 20);
}

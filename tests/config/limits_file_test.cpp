#include "config/limits_file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace troupe;

namespace {

settings begun() {
  settings s;
  s.model.requests_per_minute = 60;
  s.model.tokens_per_minute = 1'000;
  s.model.max_connections = 4;
  return s;
}

std::string why(std::string_view text) {
  auto read = parse_limits(text, "l.yaml", begun());
  REQUIRE(!read);
  CHECK(read.error().detail.find('\n') == std::string::npos);
  return read.error().detail;
}

}  // namespace

TEST_CASE("what a limits file leaves out stays as it began", "[limits_file]") {
  auto s = parse_limits("rpm: 600\nmax_connections: 0\n", "l.yaml", begun());
  REQUIRE(s);
  CHECK(s->model.requests_per_minute == 600);
  CHECK(s->model.tokens_per_minute == 1'000);
  CHECK(s->model.max_connections == 0);
  CHECK(parse_limits("", "l.yaml", begun())->model.requests_per_minute == 60);
}

TEST_CASE("a mistake in a limits file is one line that names it", "[limits_file]") {
  CHECK(why("rpmm: 1\n").find("l.yaml, line 1: unknown key 'rpmm' (did you mean 'rpm'?)") == 0);
  CHECK(why("tpm: 5\nmodel: openai/x\n").find("l.yaml, line 2: unknown key 'model'") == 0);
  CHECK(why("rpm: many\n").find("l.yaml, line 1: rpm: 'many' is not a whole number") == 0);
  CHECK(why("rpm: -1\n").find("l.yaml, line 1: rpm: ") == 0);
}

TEST_CASE("a limits file is read once in each of its states", "[limits_file]") {
  auto name = (std::filesystem::temp_directory_path() / "troupe_limits_XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  auto path = name + "/l.yaml";
  auto write = [&](const char* text) { std::ofstream{path} << text; };
  limits_watch none{"", begun()};
  CHECK_FALSE(none.changed());

  limits_watch watch{path, begun()};
  auto missing = watch.changed();
  REQUIRE(missing);
  CHECK(missing->error().code == errc::not_found);
  CHECK_FALSE(watch.changed());
  write("rpm: 600\n");
  auto first = watch.changed();
  REQUIRE(first);
  CHECK((*first)->model.requests_per_minute == 600);
  CHECK_FALSE(watch.changed());
  write("rpm: x\n");
  auto wrong = watch.changed();
  REQUIRE(wrong);
  CHECK_FALSE(*wrong);
  CHECK_FALSE(watch.changed());
  write("tpm: 70000\n");
  auto second = watch.changed();
  REQUIRE(second);
  CHECK((*second)->model.requests_per_minute == 60);
  CHECK((*second)->model.tokens_per_minute == 70'000);
  std::filesystem::remove_all(name);
}

#include "config/options.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe;

namespace {

std::string refusal(std::string_view yaml) {
  auto r = parse_config(yaml, "c.yaml");
  return r ? "accepted" : r.error().detail;
}

}  // namespace

TEST_CASE("a file's scalars, sequences and mappings become words with their lines", "[config]") {
  auto got = parse_config("# about\nmodel: openai/gpt\nepochs: 3\ntools: [a, b]\n"
                          "fields:\n  input: question\n  target: answer\nseed:\n",
                          "c.yaml");
  REQUIRE(got);
  REQUIRE(got->size() == 4);
  CHECK((*got)[0].name == "model");
  CHECK((*got)[0].where == "c.yaml, line 2");
  CHECK((*got)[2].words == std::vector<std::string>{"a", "b"});
  CHECK((*got)[3].words == std::vector<std::string>{"input=question", "target=answer"});
}

TEST_CASE("an unknown key names file, line and the nearest key", "[config]") {
  CHECK(refusal("model: a/b\nmax_concurency: 3\n")
        == "c.yaml, line 2: unknown key 'max_concurency' (did you mean 'max_concurrency'?)");
  CHECK(refusal("api_key: abc\n").find("api_key_env") != std::string::npos);
  CHECK(refusal("api_key: abc\n").find("abc") == std::string::npos);
}

TEST_CASE("a file of another shape says what was expected and where", "[config]") {
  CHECK(refusal("- a\n- b\n") == "c.yaml, line 1: expected lines of 'option: value'");
  CHECK(refusal("model: [a\n").starts_with("c.yaml, line "));
  CHECK(refusal("epochs: {a: 1}\n")
        == "c.yaml, line 1: epochs: a mapping is not a whole number from 1 to 10000");
  CHECK(refusal("epochs: 1\nepochs: 2\n") == "c.yaml, line 2: 'epochs' stands in the file twice");
  CHECK(refusal("model: \xFF\n") == "c.yaml: is not valid UTF-8");
  CHECK(refusal("").starts_with("accepted"));
}

TEST_CASE("a named file must be there; the usual one need not", "[config]") {
  auto folder =
    std::filesystem::temp_directory_path() / ("troupe_config_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  auto missing = read_config((folder / "no.yaml").string());
  REQUIRE(!missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(!read_config(folder.string()));
  auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  CHECK(read_config("")->empty());
  std::ofstream{folder / "troupe.yaml"} << "epochs: 5\n";
  auto usual = read_config("");
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
  REQUIRE(usual);
  REQUIRE(usual->size() == 1);
  CHECK(usual->front().where == "troupe.yaml, line 1");
}

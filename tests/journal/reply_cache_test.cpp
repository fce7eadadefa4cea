#include "runtime/journal/reply_cache.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

struct folder {
  folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-cache-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~folder() { std::filesystem::remove_all(path); }

  [[nodiscard]] std::string file(const std::string& name) const { return path + "/" + name; }

  std::string path;
};

std::unique_ptr<reply_cache> opened(const std::string& path) {
  auto c = reply_cache::open(path);
  REQUIRE(c);
  return *std::move(c);
}

std::string found(reply_cache& c, std::string_view key, std::uint32_t draw = 0,
                  std::int64_t since = 0) {
  auto text = c.find(key, draw, since);
  REQUIRE(text);
  return text->value_or("(none)");
}

}  // namespace

TEST_CASE("what a cache keeps is there for the next one that opens it", "[reply_cache]") {
  folder at;
  auto path = at.file("deep/er/replies.db");
  {
    auto c = opened(path);
    CHECK(found(*c, "k") == "(none)");
    REQUIRE(c->keep("k", 0, "one", 100));
    CHECK(found(*c, "k") == "one");
  }
  CHECK(found(*opened(path), "k") == "one");
}

TEST_CASE("draws of one request are kept apart, and a new one takes an old one's place",
          "[reply_cache]") {
  folder at;
  auto c = opened(at.file("c.db"));
  REQUIRE(c->keep("k", 1, "first", 100));
  REQUIRE(c->keep("k", 2, "second", 100));
  REQUIRE(c->keep("k", 1, "anew", 200));
  CHECK(found(*c, "k", 1) == "anew");
  CHECK(found(*c, "k", 2) == "second");
  CHECK(found(*c, "k", 3) == "(none)");
}

TEST_CASE("a reply that is too old is not found", "[reply_cache]") {
  folder at;
  auto c = opened(at.file("c.db"));
  REQUIRE(c->keep("k", 0, "x", 1000));
  CHECK(found(*c, "k", 0, 1000) == "x");
  CHECK(found(*c, "k", 0, 1001) == "(none)");
}

TEST_CASE("two processes may use one cache", "[reply_cache]") {
  folder at;
  auto one = opened(at.file("c.db")), other = opened(at.file("c.db"));
  REQUIRE(one->keep("k", 0, "of one", 1));
  CHECK(found(*other, "k") == "(none)");  // not committed yet
  REQUIRE(one->commit());
  CHECK(found(*other, "k") == "of one");
  REQUIRE(other->keep("k", 0, "of the other", 2));
  REQUIRE(other->commit());
  CHECK(found(*one, "k") == "of the other");
}

TEST_CASE("a file that is no cache is refused, with what to do", "[reply_cache]") {
  folder at;
  std::ofstream{at.file("text")} << "no database at all, but long enough to be looked at as one";
  auto text = reply_cache::open(at.file("text"));
  REQUIRE_FALSE(text);
  CHECK(text.error().code == errc::corrupt);
  auto dir = reply_cache::open(at.path);
  REQUIRE_FALSE(dir);
  CHECK_THAT(dir.error().detail, ContainsSubstring(at.path));
  auto below = reply_cache::open(at.file("text") + "/c.db");
  REQUIRE_FALSE(below);
  CHECK_THAT(below.error().detail, ContainsSubstring("folder cannot be made"));
}

#include "runtime/core/json.hpp"
#include "runtime/core/text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a parse error names line and column", "[json]") {
  auto parsed = parse_json("{\"a\": 1,\n  \"b\": tru}");
  REQUIRE(!parsed);
  CHECK(parsed.error().code == errc::corrupt);
  CHECK(parsed.error().detail.starts_with("line 2, column "));
}

TEST_CASE("a parse error does not repeat much of the text, and is UTF-8 whatever that is",
          "[json]") {
  for (const auto& text : {"\"" + std::string(1'000'000, 'a') + "\x01\"", std::string{"[\"\xff\"]"},
                           "\"" + std::string(1'000, '\xbf'), "1e" + std::string(100'000, '9')}) {
    auto parsed = parse_json(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().detail.size() < 400);
    CHECK(is_utf8(parsed.error().detail));
  }
}

TEST_CASE("nesting beyond the limit is refused before the parser recurses", "[json]") {
  CHECK(parse_json(std::string(64, '[') + std::string(64, ']')));
  CHECK(!parse_json(std::string(65, '[') + std::string(65, ']')));
  CHECK(!parse_json(std::string(1'000'000, '[')));
  CHECK(parse_json("\"" + std::string(100, '[') + "\""));
}

TEST_CASE("text longer than the limit is refused", "[json]") {
  CHECK(!parse_json("\"" + std::string(100, 'a') + "\"", {.max_bytes = 50}));
}

TEST_CASE("a JSON string survives every byte", "[json]") {
  std::string all;
  for (int c = 1; c < 128; ++c)
    all += static_cast<char>(c);
  all += "\xC3\xA9\xF0\x9F\x98\x80";
  std::string out;
  append_json_string(out, all);
  CHECK(json::parse(out).get<std::string>() == all);
}

TEST_CASE("invalid UTF-8 becomes the replacement character", "[json]") {
  std::string out;
  append_json_string(out, "a\xFFz\xED\xA0\x80");
  CHECK(json::parse(out).get<std::string>() == "a\uFFFDz\uFFFD\uFFFD\uFFFD");
  CHECK(dump_json(json{{"k", "\xFF"}}) == "{\"k\":\"\uFFFD\"}");
}

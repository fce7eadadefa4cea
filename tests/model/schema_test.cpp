#include "runtime/model/schema.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>

using namespace troupe;

namespace {

std::string violation(std::string_view schema, std::string_view value) {
  auto r = check_schema(json::parse(schema), json::parse(value));
  REQUIRE(!r);
  CHECK(r.error().code == errc::invalid_argument);
  return r.error().detail;
}

}  // namespace

TEST_CASE("a violation deep inside is named by its place", "[schema]") {
  auto schema = R"({"type":"object","properties":{"rows":{"type":"array","items":{"type":"object",
    "properties":{"n":{"type":["integer","null"]}}}}}})";
  CHECK(check_schema(json::parse(schema), json::parse(R"({"rows":[{"n":1},{"n":null}]})")));
  CHECK(violation(schema, R"({"rows":[{"n":1},{"n":"x"}]})")
        == "'rows[1].n' is a string (\"x\") but must be integer or null");
  CHECK(violation(schema, "3") == "the value is an integer (3) but must be object");
}

TEST_CASE("references within the schema are followed", "[schema]") {
  auto schema =
    R"({"$defs":{"id":{"type":"integer","minimum":1}},"properties":{"a":{"$ref":"#/$defs/id"}}})";
  CHECK(check_schema(json::parse(schema), json::parse(R"({"a":1})")));
  CHECK(!check_schema(json::parse(schema), json::parse(R"({"a":0})")));
}

TEST_CASE("several violations are all told, up to a bound", "[schema]") {
  auto schema = R"({"type":"array","items":{"type":"integer"}})";
  auto text = violation(schema, R"(["a","b"])");
  CHECK(text
        == "'[0]' is a string (\"a\") but must be integer\n'[1]' is a string (\"b\") but must be "
           "integer");
  json many = json::array();
  for (int i = 0; i < 1000; ++i)
    many.push_back("x");
  auto r = check_schema(json::parse(schema), many);
  REQUIRE(!r);
  CHECK(r.error().detail.ends_with("\nand 992 more"));
}

TEST_CASE("what is no schema is an error, and nothing is fetched", "[schema]") {
  CHECK(violation(R"({"type":7})", "1").starts_with("not a usable JSON schema"));
  CHECK(violation(R"({"$ref":"http://localhost/x"})", "1").starts_with("not a usable JSON schema"));
}

TEST_CASE("a schema whose references go round is no schema, one that goes into the value is",
          "[schema]") {
  for (
    auto round :
    {R"({"$ref":"#"})", R"({"properties":{"x":{"$ref":"#/properties/x"}}})",
     R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"items":{"$ref":"#/$defs/a"}})",
     R"({"$defs":{"a":{"anyOf":[{"type":"null"},{"not":{"$ref":"#/$defs/a"}}]}}})"})
    CHECK(violation(round, "[1]")
          == "not a usable JSON schema: its references lead round in a circle");
  json chain{{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 100'000; ++i)
    chain["$defs"]["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  CHECK(!check_schema(chain, 1));
  auto tree = R"({"$defs":{"t":{"type":"object","properties":{"left":{"$ref":"#/$defs/t"}}}},
                  "$ref":"#/$defs/t"})";
  CHECK(check_schema(json::parse(tree), json::parse(R"({"left":{"left":{}}})")));
  CHECK(violation(tree, R"({"left":{"left":3}})")
        == "'left.left' is an integer (3) but must be object");
}

TEST_CASE("a pattern is not matched against text long enough to end the stack", "[schema]") {
  auto schema = json::parse(R"({"type":"string","pattern":"^(a|b)*$"})");
  CHECK(check_schema(schema, "abab"));
  CHECK(!check_schema(schema, "abc"));
  auto r = check_schema(schema, std::string(1u << 20, 'a'));
  REQUIRE(!r);
  CHECK(r.error().detail.find("at most 4096 bytes") != std::string::npos);
}

TEST_CASE("a pattern that takes time without end is given up, and one that is none is refused",
          "[schema]") {
  auto hard = compiled_schema::compile({{"type", "string"}, {"pattern", "^(a+)+$"}});
  REQUIRE(hard);
  auto begun = std::chrono::steady_clock::now();
  CHECK_FALSE(hard->check(std::string(40, 'a') + "!"));
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds{5});
  CHECK(hard->check("aaa"));
  for (auto& wrong : {json{{"pattern", "([a"}}, json{{"properties", {{"x", {{"pattern", "*"}}}}}},
                      json{{"patternProperties", {{"(", json::object()}}}}})
    CHECK(compiled_schema::compile(wrong).error().detail.find("no regular expression")
          != std::string::npos);
  CHECK(compiled_schema::compile({{"enum", {{{"pattern", "("}}}}}));
}

#include "tools/tool.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>

using namespace troupe;

namespace {

/// A tool that answers with its arguments.
tool echo(std::string name, std::string_view parameters = "{}") {
  tool t;
  t.spec.name = std::move(name);
  t.spec.parameters = ordered_json::parse(parameters);
  t.call = [](const json& arguments, const tool_context&) -> result<json> { return arguments; };
  return t;
}

tool_set with(tool t) {
  tool_set tools;
  auto added = tools.add(std::move(t));
  REQUIRE(added);
  return tools;
}

tool_set typed(std::string_view schema) {
  return with(echo("f", R"({"type":"object","properties":{"x":)" + std::string{schema}
                          + R"(},"required":["x"]})"));
}

std::string refusal(const tool_set& tools, const json& arguments) {
  auto r = tools.call("f", arguments, {});
  REQUIRE(!r);
  CHECK(r.error().code == errc::invalid_argument);
  return r.error().detail;
}

bool takes(const tool_set& tools, const json& x) {
  return tools.call("f", {{"x", x}}, {}).has_value();
}

/// What the tool sees of a value.
json seen(const tool_set& tools, const json& x) {
  auto r = tools.call("f", {{"x", x}}, {});
  CAPTURE(x.dump());
  REQUIRE(r);
  return r->at("x");
}

}  // namespace

TEST_CASE("a tool's name must be an identifier, no keyword, no builtin, and free (case 22)",
          "[tools]") {
  tool_set tools;
  CHECK(tools.add(echo("search")));
  CHECK(tools.add(final_answer_tool()));
  for (auto name : {"", "1st", "a-b", "a b", "caf\xC3\xA9", "class", "None", "print", "open",
                    "search", "final_answer"}) {
    CAPTURE(name);
    auto r = tools.add(echo(name));
    REQUIRE(!r);
    CHECK(r.error().code == errc::invalid_argument);
    CHECK(r.error().detail.starts_with("tool '" + std::string{name} + "': "));
  }
  CHECK(!tools.add(echo(std::string(65, 'a'))));
  CHECK(tools.size() == 2);
  CHECK(tools.specs()[0].name == "search");
  CHECK(tools.find("search") != nullptr);
  CHECK(tools.find("other") == nullptr);
}

TEST_CASE("parameters must be an object schema that can be used", "[tools]") {
  for (auto bad :
       {"[]", R"({"type":"array"})", R"({"properties":[]})", R"({"properties":{"a b":{}}})",
        R"({"properties":{"class":{}}})", R"({"properties":{},"required":["x"]})",
        R"({"properties":{"x":{"type":"strin"}}})",
        R"({"properties":{"x":{"$ref":"http://example.com/s.json"}}})"}) {
    CAPTURE(bad);
    tool_set tools;
    CHECK(!tools.add(echo("f", bad)));
  }
  tool nothing = echo("f");
  nothing.call = nullptr;
  CHECK(!tool_set{}.add(nothing));
}

TEST_CASE("values are checked by type as JSON has them (case 31)", "[tools]") {
  auto boolean = typed(R"({"type":"boolean"})");
  CHECK(takes(boolean, true));
  for (json x : {json("b"), json(json::object()), json(1)})
    CHECK(!takes(boolean, x));
  auto number = typed(R"({"type":"number"})");
  CHECK(takes(number, 1));
  CHECK(takes(number, 1.5));
  CHECK(!takes(number, true));
  CHECK(!takes(number, "b"));
  CHECK(!takes(number, nullptr));
  auto integer = typed(R"({"type":"integer"})");
  CHECK(takes(integer, 1));
  CHECK(!takes(integer, 1.5));
  CHECK(!takes(integer, true));
  auto either = typed(R"({"type":["string","integer"]})");
  CHECK(takes(either, "a"));
  CHECK(takes(either, 1));
  CHECK(!takes(either, nullptr));
  CHECK(!takes(either, true));
  auto any = typed(R"({"type":"any"})");
  CHECK(takes(any, nullptr));
  CHECK(takes(any, json::array({1, "a"})));
  auto nullable = typed(R"({"type":"string","nullable":true,"enum":["a","b"]})");
  CHECK(takes(nullable, nullptr));
  CHECK(takes(nullable, "a"));
  CHECK(!takes(nullable, "c"));
  CHECK(!takes(nullable, 1));
}

TEST_CASE("a value becomes the type that is wanted where nothing is lost", "[tools]") {
  struct {
    std::string_view schema;
    json given, meant;
  } const kept_whole[] = {
    {R"({"type":"integer"})", "3", 3},
    {R"({"type":"integer"})", " -12 ", -12},
    {R"({"type":"integer"})", 3.0, 3},
    {R"({"type":"integer"})", "3.0", 3},
    {R"({"type":"integer"})", -9007199254740992.0, -9007199254740992},
    {R"({"type":"number"})", "3", 3},
    {R"({"type":"number"})", "1.5e3", 1500.0},
    {R"({"type":"boolean"})", "true", true},
    {R"({"type":"boolean"})", "False", false},
    {R"({"type":["integer","null"]})", "null", nullptr},
    {R"({"type":["integer","null"]})", "7", 7},
    {R"({"type":"array","items":{"type":"integer"}})", R"(["1", 2.0])", {1, 2}},
    {R"({"type":"object"})", R"({"a": 1})", {{"a", 1}}},
    {R"({"anyOf":[{"type":"integer"},{"type":"null"}]})", "4", 4},
    {R"({"type":["string","integer"]})", "4", "4"},
    {R"({"type":"integer","enum":[1,2]})", "2", 2},
    {"{}", "4", "4"},
  };
  for (auto& k : kept_whole)
    CHECK(seen(typed(k.schema), k.given).dump() == k.meant.dump());
}

TEST_CASE("a value that would lose something is refused as it is", "[tools]") {
  struct {
    std::string_view type;
    json given;
  } const refused[] = {
    {"integer", 3.5},
    {"integer", "3.5"},
    {"integer", "3.00000000000000000001"},
    {"integer", "12345678901234567890123"},
    {"integer", 1e300},
    {"integer", "1e2"},
    {"integer", "0x10"},
    {"integer", "007"},
    {"integer", ""},
    {"integer", true},
    {"number", "12345678901234567890123"},
    {"number", "1e999"},
    {"number", "NaN"},
    {"boolean", "yes"},
    {"boolean", 1},
    {"boolean", "TRUE"},
    {"null", ""},
    {"array", "a, b"},
    {"array", R"({"a": 1})"},
    {"object", R"({"a": )"},
    {"string", 3},
    {"string", true},
    {"string", nullptr},
  };
  for (auto& r : refused) {
    CAPTURE(r.type, r.given.dump());
    CHECK(!takes(typed(json{{"type", r.type}}.dump()), r.given));
  }
  CHECK(refusal(typed(R"({"type":"integer"})"), {{"x", "3.5"}})
        == "f: 'x' is a string (\"3.5\") but must be integer");
  CHECK(refusal(typed(R"({"type":"integer"})"), {{"x", 3.5}})
        == "f: 'x' is a number (3.5) but must be integer");
}

TEST_CASE("nested values are made to fit, defaulted and judged at their place", "[tools]") {
  auto tools =
    with(echo("f", R"({"properties":{"x":{"type":"array","items":{"$ref":"#/$defs/row"}}},
    "required":["x"],
    "$defs":{"row":{"type":"object","required":["n"],"properties":{
      "n":{"type":"integer"},
      "unit":{"type":"string","enum":["C","F"],"default":"C"},
      "deep":{"type":"object","default":{},"properties":{"on":{"type":"boolean","default":true}}},
      "next":{"$ref":"#/$defs/row"}}}}})"));
  CHECK(*tools.call("f",
                    json::parse(R"({"x":[{"n":"1","unit":null,"next":{"n":2.0,"unit":"F"}}]})"), {})
        == json::parse(R"({"x":[{"n":1,"unit":"C","deep":{"on":true},
                           "next":{"n":2,"unit":"F","deep":{"on":true}}}]})"));
  CHECK(refusal(tools, json::parse(R"({"x":[{"n":1},{"n":"two"}]})"))
        == "f: 'x[1].n' is a string (\"two\") but must be integer");
  CHECK(refusal(tools, json::parse(R"({"x":[{"n":1,"unit":"K"}]})"))
        == "f: 'x[0].unit' is a string (\"K\") but must be one of [\"C\",\"F\",null]");
  CHECK(refusal(tools, json::parse(R"({"x":[{"unit":"C"}]})")).find("'x[0]'") != std::string::npos);
}

TEST_CASE("a schema that refers to itself ends with the value", "[tools]") {
  auto tree = with(echo("f", R"({"$defs":{"node":{"anyOf":[{"type":"integer"},
    {"type":"array","items":{"$ref":"#/$defs/node"}}]}},
    "properties":{"x":{"$ref":"#/$defs/node"}}})"));
  CHECK(*tree.call("f", json::parse(R"({"x":["1",["2","[3]"]]})"), {})
        == json::parse(R"({"x":[1,[2,[3]]]})"));
}

TEST_CASE("a lone value is that of the only parameter, or of the only one that is required",
          "[tools]") {
  auto one = typed(R"({"type":"integer"})");
  CHECK(*one.call("f", 3, {}) == json{{"x", 3}});
  CHECK(*one.call("f", "3", {}) == json{{"x", 3}});
  auto two = with(echo("f", R"({"properties":{"a":{},"b":{}}})"));
  auto task = with(echo("f", R"({"properties":{"more":{},"task":{}},"required":["task"]})"));
  CHECK(*task.call("f", "look", {}) == json{{"task", "look"}});
  CHECK(refusal(two, "3")
        == "f: the arguments are a string but must be an object of names and "
           "values\nThe call is f(a, b)");
}

TEST_CASE("a refusal tells the model what to change", "[tools]") {
  auto number = typed(R"({"type":"number"})");
  CHECK(refusal(number, {{"x", true}}) == "f: 'x' is a boolean (true) but must be number");
  CHECK(refusal(number, json::object())
        == "f: wrong arguments\nthe argument \"x\" is required and missing\nThe call is f(x)");
  CHECK(refusal(number, {{"x", 1}, {"yy", 2}})
        == "f: wrong arguments\nunknown argument 'yy'\nThe call is f(x)");
  CHECK(refusal(typed(R"({"enum":["C","F"]})"), {{"x", "K"}})
        == "f: 'x' is a string (\"K\") but must be one of [\"C\",\"F\"]");
  auto named = with(echo("f", R"({"properties":{"zone":{},"city":{}}})"));
  CHECK(refusal(named, {{"citty", 1}})
          .find("unknown argument 'citty' (did you mean 'city'?)\n"
                "The call is f(zone, city)")
        != std::string::npos);
  CHECK(refusal(named, json::array({1})).find("must be an object") != std::string::npos);
  auto long_value = refusal(number, {{"x", std::string(100'000, 'a')}});
  CHECK(long_value.size() < 200);
}

TEST_CASE("what has a default may be left out, also where it is listed as required", "[tools]") {
  auto tools =
    with(echo("f", R"({"properties":{"x":{"type":"integer","default":7}},"required":["x"]})"));
  CHECK(*tools.call("f", json::object(), {}) == json{{"x", 7}});
}

TEST_CASE("what is left out or null takes its default", "[tools]") {
  auto tools = with(echo("f", R"({"properties":{"x":{"type":"integer","default":7},"y":{}}})"));
  CHECK(*tools.call("f", json::object(), {}) == json{{"x", 7}});
  CHECK(*tools.call("f", {{"x", nullptr}}, {}) == json{{"x", 7}});
  CHECK(*tools.call("f", {{"x", 1}}, {}) == json{{"x", 1}});
  CHECK(*tools.call("f", nullptr, {}) == json{{"x", 7}});
  auto nullable =
    with(echo("f", R"({"properties":{"x":{"type":["integer","null"],"default":7}}})"));
  CHECK(*nullable.call("f", {{"x", nullptr}}, {}) == json{{"x", nullptr}});
  CHECK(*nullable.call("f", json::object(), {}) == json{{"x", 7}});
}

TEST_CASE("additional properties are taken when the schema says so", "[tools]") {
  auto tools = with(echo("f", R"({"properties":{},"additionalProperties":true})"));
  CHECK(*tools.call("f", {{"more", 1}}, {}) == json{{"more", 1}});
}

TEST_CASE("an unknown tool is answered with the names that exist", "[tools]") {
  tool_set tools;
  REQUIRE(tools.add(echo("search")));
  REQUIRE(tools.add(echo("read_page")));
  auto r = tools.call("serch", {}, {});
  REQUIRE(!r);
  CHECK(r.error().code == errc::not_found);
  CHECK(r.error().detail
        == "there is no tool 'serch' (did you mean 'search'?); there is: search, read_page");
}

TEST_CASE("a tool that throws answers with an error", "[tools]") {
  auto t = echo("f");
  t.call = [](const json&, const tool_context&) -> result<json> {
    throw std::runtime_error("boom");
  };
  auto r = with(t).call("f", {}, {});
  REQUIRE(!r);
  CHECK(r.error() == error{errc::internal, "f: boom"});
}

TEST_CASE("a tool is told its run and call", "[tools]") {
  auto t = echo("f");
  t.call = [](const json&, const tool_context& c) -> result<json> {
    return json::array({c.run.value, c.call.value});
  };
  CHECK(*with(t).call("f", {}, {run_id{3}, call_id{4}, never}) == json::array({3, 4}));
}

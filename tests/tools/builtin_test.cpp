#include "tools/tool.hpp"
#include "tools/units.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

tool_set with(tool t) {
  tool_set tools;
  auto added = tools.add(std::move(t));
  REQUIRE(added);
  return tools;
}

std::string complaint(std::string_view from, std::string_view to) {
  auto r = convert_units(1, from, to);
  REQUIRE(!r);
  CHECK(r.error().code == errc::invalid_argument);
  return r.error().detail;
}

}  // namespace

TEST_CASE("final_answer gives back its argument, whatever it is", "[builtin]") {
  auto tools = with(final_answer_tool());
  for (json answer : {json(nullptr), json(3), json("x"), json::array({1, 2})})
    CHECK(*tools.call("final_answer", {{"answer", answer}}, {}) == answer);
  CHECK(!tools.call("final_answer", json::object(), {}));
  CHECK(tools.specs()[0].ends_run);
}

// Expected values: NIST SP 811 (2008), appendix B.8 and B.9.
TEST_CASE("units convert by the factors of NIST SP 811", "[builtin]") {
  struct {
    double value;
    std::string_view from, to;
    double expected;
  } const known[] = {
    {1, "mi", "km", 1.609344},
    {1, "ft", "in", 12},
    {1, "nautical mile", "m", 1852},
    {1, "lb", "kg", 0.45359237},
    {1, "lb", "oz", 16},
    {2000, "pounds", "short_ton", 1},
    {90, "min", "h", 1.5},
    {100, "degC", "degF", 212},
    {-40, "F", "C", -40},
    {0, "K", "C", -273.15},
    {1, "gal", "L", 3.785411784},
    {1, "imperial gallon", "litre", 4.54609},
    {1, "cup", "tbsp", 16},
    {1, "acre", "m2", 4046.8564224},
    {1, "square mile", "acre", 640},
    {36, "km/h", "m/s", 10},
    {60, "miles per hour", "ft/s", 88},
    {1, "GiB", "MB", 1073.741824},
    {8, "bit", "byte", 1},
    {1, "kWh", "MJ", 3.6},
    {1, "kcal", "J", 4184},
    {1, "BTU", "J", 1055.05585262},
    {1, "mmHg", "Pa", 133.322387415},
    {1, "atm", "Torr", 760},
    {1, "psi", "Pa", 6894.75729316836},
    {3, "FEET", "yard", 1},
    {1, "ft_lbf", "J", 1.3558179483314},
  };
  for (auto& k : known) {
    CAPTURE(k.from, k.to);
    auto r = convert_units(k.value, k.from, k.to);
    REQUIRE(r);
    auto tolerance = 1e-9 * std::max(1.0, std::abs(k.expected));
    CHECK(std::abs(*r - k.expected) <= tolerance);
  }
  CHECK(*convert_units(1, "ft", "in") == 12);  // exactly, not 12.000000000000002
  CHECK(*convert_units(98.6, "degF", "degC") == 37);
}

TEST_CASE("an unknown unit, another dimension and an overflow are told apart", "[builtin]") {
  CHECK(complaint("kilometr", "mi") == "unknown unit 'kilometr' (did you mean 'kilometer'?)");
  CHECK(complaint("mi", "frobnication").find("unknown unit 'frobnication'; give a symbol") == 0);
  CHECK(complaint("kg", "m") == "kg is a unit of mass but m is one of length");
  CHECK(!convert_units(1e308, "ly", "nm"));
}

TEST_CASE("convert_units is a tool with a checked number", "[builtin]") {
  auto tools = with(convert_units_tool());
  CHECK(*tools.call("convert_units", {{"value", 1}, {"from_unit", "ft"}, {"to_unit", "in"}}, {})
        == 12.0);
  CHECK(*tools.call("convert_units", {{"value", "1"}, {"from_unit", "ft"}, {"to_unit", "in"}}, {})
        == 12.0);
  CHECK(!tools.call("convert_units", {{"value", "a"}, {"from_unit", "ft"}, {"to_unit", "in"}}, {}));
}

TEST_CASE("current_time tells the injected clock's time with its offset", "[builtin]") {
  auto tools = with(current_time_tool([] { return std::int64_t{1'772'370'309'000'000}; }));
  CHECK(*tools.call("current_time", {}, {}) == "2026-03-01T13:05:09+00:00");
  CHECK(*tools.call("current_time", {{"utc_offset_minutes", 60}}, {})
        == "2026-03-01T14:05:09+01:00");
  CHECK(*tools.call("current_time", {{"utc_offset_minutes", -210}}, {})
        == "2026-03-01T09:35:09-03:30");
  CHECK(!tools.call("current_time", {{"utc_offset_minutes", 5000}}, {}));
}

TEST_CASE("built-in tools are found by name", "[builtin]") {
  for (auto name : builtin_tool_names()) {
    auto t = builtin_tool(name);
    REQUIRE(t);
    CHECK(t->spec.name == name);
    CHECK(tool_set{}.add(*t));
  }
  auto r = builtin_tool("convert_unit");
  REQUIRE(!r);
  CHECK(r.error().code == errc::not_found);
  CHECK(r.error().detail.find("did you mean 'convert_units'?") != std::string::npos);
}

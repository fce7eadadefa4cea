#include "runtime/core/text.hpp"
#include "tools/tool.hpp"
#include "tools/units.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

namespace troupe {
namespace {

struct builtin {
  std::string_view name;
  tool (*make)();
};

constexpr std::array<builtin, 3> builtins{{
  {"final_answer", final_answer_tool},
  {"convert_units", convert_units_tool},
  {"current_time", [] { return current_time_tool(); }},
}};

/// Source  RFC 3339, section 5.6.
std::string iso_8601(std::int64_t micros_since_epoch, int offset_minutes) {
  auto local = micros_since_epoch / 1'000'000 + std::int64_t{offset_minutes} * 60;
  std::time_t seconds{local};
  std::tm t{};
  gmtime_r(&seconds, &t);
  char text[64];
  auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
  auto minutes = offset_minutes < 0 ? -offset_minutes : offset_minutes;
  std::snprintf(text + length, sizeof text - length, "%c%02d:%02d", offset_minutes < 0 ? '-' : '+',
                minutes / 60, minutes % 60);
  return text;
}

}  // namespace

tool final_answer_tool() {
  tool t;
  t.spec.name = "final_answer";
  t.spec.description = "Gives the final answer to the task and ends it.";
  t.spec.parameters = ordered_json::parse(R"({"type": "object", "properties": {
    "answer": {"description": "The answer, of any type."}}, "required": ["answer"]})");
  t.spec.ends_run = true;
  t.spec.idempotent = true;
  t.call = [](const json& arguments, const tool_context&) -> result<json> {
    return arguments.at("answer");
  };
  return t;
}

tool convert_units_tool() {
  tool t;
  t.spec.name = "convert_units";
  t.spec.description =
    "Converts a value exactly between units of length, mass, time, temperature, volume, area, "
    "speed, "
    "data, energy or pressure. Units are symbols (km, lb, degC, fl_oz, kWh, m/s) or names (mile, "
    "square_foot). Gallon, pint and ounce are the US ones unless named imperial_gallon and so on.";
  t.spec.parameters = ordered_json::parse(R"({"type": "object", "properties": {
    "value": {"type": "number", "description": "The value to convert."},
    "from_unit": {"type": "string", "description": "Its unit, e.g. \"mi\"."},
    "to_unit": {"type": "string", "description": "The unit wanted, e.g. \"km\"."}},
    "required": ["value", "from_unit", "to_unit"]})");
  t.spec.output_type = "number";
  t.spec.idempotent = true;
  t.call = [](const json& arguments, const tool_context&) -> result<json> {
    return convert_units(arguments.at("value").get<double>(),
                         arguments.at("from_unit").get_ref<const std::string&>(),
                         arguments.at("to_unit").get_ref<const std::string&>())
      .map([](double x) { return json(x); });
  };
  return t;
}

tool current_time_tool(std::function<std::int64_t()> clock) {
  tool t;
  t.spec.name = "current_time";
  t.spec.description =
    "Tells the date and time now, as ISO 8601, e.g. \"2026-03-01T14:05:09+01:00\".";
  t.spec.parameters = ordered_json::parse(R"({"type": "object", "properties": {
    "utc_offset_minutes": {"type": "integer", "minimum": -1439, "maximum": 1439, "default": 0,
      "description": "Minutes that local time is ahead of UTC, e.g. 60."}}})");
  t.spec.output_type = "string";
  t.spec.idempotent = true;
  t.call = [clock = std::move(clock)](const json& arguments, const tool_context&) -> result<json> {
    return json(iso_8601(clock(), arguments.at("utc_offset_minutes").get<int>()));
  };
  return t;
}

result<tool> builtin_tool(std::string_view name) {
  std::string list;
  for (auto& b : builtins) {
    if (b.name == name)
      return b.make();
    list += (list.empty() ? "" : ", ") + std::string{b.name};
  }
  return fail(errc::not_found, "there is no built-in tool '" + std::string{name} + "'"
                                 + did_you_mean(name, builtin_tool_names())
                                 + "; there is: " + list);
}

std::vector<std::string_view> builtin_tool_names() {
  std::vector<std::string_view> names;
  for (auto& b : builtins)
    names.push_back(b.name);
  return names;
}

}  // namespace troupe

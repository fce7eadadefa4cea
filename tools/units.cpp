#include "tools/units.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace troupe {
namespace {

struct unit {
  std::string_view dimension;
  std::string_view symbol;
  std::string_view name;
  double factor;      ///< of the dimension's first unit
  double offset = 0;  ///< kelvin at zero of the scale
};

constexpr double foot = 0.3048, inch = 0.0254, mile = 1609.344, pound = 0.45359237;
constexpr double us_gallon = 3.785411784e-3, uk_gallon = 4.54609e-3;  // m^3
constexpr double standard_gravity = 9.80665, pound_force = pound * standard_gravity;

// NIST SP 811, appendix B.8, exact where it prints bold; the others are its exact definitions
// multiplied out (square and cubic feet, pounds-force per square inch).
constexpr std::array units{
  unit{"length", "m", "meter", 1},
  unit{"length", "m", "metre", 1},
  unit{"length", "km", "kilometer", 1e3},
  unit{"length", "km", "kilometre", 1e3},
  unit{"length", "cm", "centimeter", 1e-2},
  unit{"length", "cm", "centimetre", 1e-2},
  unit{"length", "mm", "millimeter", 1e-3},
  unit{"length", "mm", "millimetre", 1e-3},
  unit{"length", "um", "micrometer", 1e-6},
  unit{"length", "nm", "nanometer", 1e-9},
  unit{"length", "in", "inch", inch},
  unit{"length", "ft", "foot", foot},
  unit{"length", "yd", "yard", 0.9144},
  unit{"length", "mi", "mile", mile},
  unit{"length", "nmi", "nautical_mile", 1852},
  unit{"length", "au", "astronomical_unit", 149597870700.0},
  unit{"length", "ly", "light_year", 9460730472580800.0},

  unit{"mass", "kg", "kilogram", 1},
  unit{"mass", "g", "gram", 1e-3},
  unit{"mass", "mg", "milligram", 1e-6},
  unit{"mass", "ug", "microgram", 1e-9},
  unit{"mass", "t", "tonne", 1e3},
  unit{"mass", "lb", "pound", pound},
  unit{"mass", "oz", "ounce", pound / 16},
  unit{"mass", "st", "stone", pound * 14},
  unit{"mass", "ton_us", "short_ton", pound * 2000},
  unit{"mass", "ton_uk", "long_ton", pound * 2240},
  unit{"mass", "ct", "carat", 2e-4},
  unit{"mass", "gr", "grain", pound / 7000},
  unit{"mass", "ozt", "troy_ounce", pound / 7000 * 480},

  unit{"time", "s", "second", 1},
  unit{"time", "ms", "millisecond", 1e-3},
  unit{"time", "us", "microsecond", 1e-6},
  unit{"time", "ns", "nanosecond", 1e-9},
  unit{"time", "min", "minute", 60},
  unit{"time", "h", "hour", 3600},
  unit{"time", "d", "day", 86400},
  unit{"time", "wk", "week", 604800},
  unit{"time", "yr", "year", 31557600},  // the Julian year of 365.25 days

  unit{"temperature", "K", "kelvin", 1},
  unit{"temperature", "C", "celsius", 1, 273.15},
  unit{"temperature", "degC", "degree_celsius", 1, 273.15},
  unit{"temperature", "F", "fahrenheit", 5.0 / 9, 459.67 * 5 / 9},
  unit{"temperature", "degF", "degree_fahrenheit", 5.0 / 9, 459.67 * 5 / 9},
  unit{"temperature", "R", "rankine", 5.0 / 9},

  unit{"volume", "m3", "cubic_meter", 1},
  unit{"volume", "L", "liter", 1e-3},
  unit{"volume", "l", "litre", 1e-3},
  unit{"volume", "mL", "milliliter", 1e-6},
  unit{"volume", "ml", "millilitre", 1e-6},
  unit{"volume", "cL", "centiliter", 1e-5},
  unit{"volume", "cm3", "cubic_centimeter", 1e-6},
  unit{"volume", "in3", "cubic_inch", inch* inch* inch},
  unit{"volume", "ft3", "cubic_foot", foot* foot* foot},
  unit{"volume", "yd3", "cubic_yard", 0.9144 * 0.9144 * 0.9144},
  unit{"volume", "gal", "gallon", us_gallon},
  unit{"volume", "qt", "quart", us_gallon / 4},
  unit{"volume", "pt", "pint", us_gallon / 8},
  unit{"volume", "cup", "cup", us_gallon / 16},
  unit{"volume", "fl_oz", "fluid_ounce", us_gallon / 128},
  unit{"volume", "tbsp", "tablespoon", us_gallon / 256},
  unit{"volume", "tsp", "teaspoon", us_gallon / 768},
  unit{"volume", "bbl", "barrel", us_gallon * 42},
  unit{"volume", "gal_uk", "imperial_gallon", uk_gallon},
  unit{"volume", "pt_uk", "imperial_pint", uk_gallon / 8},
  unit{"volume", "fl_oz_uk", "imperial_fluid_ounce", uk_gallon / 160},

  unit{"area", "m2", "square_meter", 1},
  unit{"area", "km2", "square_kilometer", 1e6},
  unit{"area", "cm2", "square_centimeter", 1e-4},
  unit{"area", "mm2", "square_millimeter", 1e-6},
  unit{"area", "ha", "hectare", 1e4},
  unit{"area", "a", "are", 100},
  unit{"area", "in2", "square_inch", inch* inch},
  unit{"area", "ft2", "square_foot", foot* foot},
  unit{"area", "yd2", "square_yard", 0.9144 * 0.9144},
  unit{"area", "mi2", "square_mile", mile* mile},
  unit{"area", "ac", "acre", foot* foot * 43560},  // the international acre

  unit{"speed", "m/s", "meter_per_second", 1},
  unit{"speed", "km/h", "kilometer_per_hour", 1 / 3.6},
  unit{"speed", "kph", "kmh", 1 / 3.6},
  unit{"speed", "mph", "mile_per_hour", mile / 3600},
  unit{"speed", "kn", "knot", 1852.0 / 3600},
  unit{"speed", "ft/s", "foot_per_second", foot},
  unit{"speed", "c", "speed_of_light", 299792458},

  unit{"data", "bit", "bit", 1},
  unit{"data", "B", "byte", 8},
  unit{"data", "kbit", "kilobit", 1e3},
  unit{"data", "Mbit", "megabit", 1e6},
  unit{"data", "Gbit", "gigabit", 1e9},
  unit{"data", "kB", "kilobyte", 8e3},
  unit{"data", "MB", "megabyte", 8e6},
  unit{"data", "GB", "gigabyte", 8e9},
  unit{"data", "TB", "terabyte", 8e12},
  unit{"data", "PB", "petabyte", 8e15},
  unit{"data", "KiB", "kibibyte", 8.0 * 1024},
  unit{"data", "MiB", "mebibyte", 8.0 * 1048576},
  unit{"data", "GiB", "gibibyte", 8.0 * 1073741824},
  unit{"data", "TiB", "tebibyte", 8.0 * 1099511627776},

  unit{"energy", "J", "joule", 1},
  unit{"energy", "kJ", "kilojoule", 1e3},
  unit{"energy", "MJ", "megajoule", 1e6},
  unit{"energy", "Wh", "watt_hour", 3600},
  unit{"energy", "kWh", "kilowatt_hour", 3.6e6},
  unit{"energy", "MWh", "megawatt_hour", 3.6e9},
  unit{"energy", "cal", "calorie", 4.184},
  unit{"energy", "kcal", "kilocalorie", 4184},
  unit{"energy", "BTU", "british_thermal_unit", 1055.05585262},  // International Table
  unit{"energy", "eV", "electronvolt", 1.602176634e-19},
  unit{"energy", "erg", "erg", 1e-7},
  unit{"energy", "ft_lbf", "foot_pound", pound_force* foot},

  unit{"pressure", "Pa", "pascal", 1},
  unit{"pressure", "hPa", "hectopascal", 100},
  unit{"pressure", "kPa", "kilopascal", 1e3},
  unit{"pressure", "MPa", "megapascal", 1e6},
  unit{"pressure", "bar", "bar", 1e5},
  unit{"pressure", "mbar", "millibar", 100},
  unit{"pressure", "atm", "atmosphere", 101325},
  unit{"pressure", "Torr", "torr", 101325.0 / 760},
  unit{"pressure", "mmHg", "millimeter_of_mercury", 133.322387415},
  unit{"pressure", "inHg", "inch_of_mercury", 25.4 * 133.322387415},
  unit{"pressure", "psi", "pound_per_square_inch", pound_force / (inch * inch)},
};

std::string normal(std::string_view text) {
  std::string out{trim(text)};
  for (auto& c : out)
    c = c == ' ' || c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

/// "feet" and the like; the regular plural is tried by itself.
std::string singular(const std::string& name) {
  if (name.find("feet") != std::string::npos) {
    auto at = name.find("feet");
    return name.substr(0, at) + "foot" + name.substr(at + 4);
  }
  if (name == "inches" || name.ends_with("_inches"))
    return name.substr(0, name.size() - 2);
  if (auto at = name.find("s_per_"); at != std::string::npos)
    return name.substr(0, at) + name.substr(at + 1);
  return name.size() > 3 && name.ends_with('s') ? name.substr(0, name.size() - 1) : name;
}

/// Symbols are told apart by case (mW, MW); names are not.
const unit* find_unit(std::string_view text) {
  auto symbol = trim(text);
  auto name = normal(text);
  auto one = singular(name);
  for (auto& u : units)
    if (u.symbol == symbol)
      return &u;
  for (auto& u : units)
    if (u.name == name || u.name == one)
      return &u;
  return nullptr;
}

error unknown_unit(std::string_view text) {
  std::vector<std::string_view> names;
  for (auto& u : units) {
    names.push_back(u.name);
    names.push_back(u.symbol);
  }
  auto hint = did_you_mean(normal(text), names);
  if (hint.empty())
    hint = "; give a symbol such as km, lb, degC, kWh, or a name such as mile_per_hour";
  return {errc::invalid_argument, "unknown unit '" + cut_middle(text, 100) + "'" + hint};
}

double rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

result<double> convert_units(double value, std::string_view from, std::string_view to) {
  auto* a = find_unit(from);
  auto* b = find_unit(to);
  if (a == nullptr || b == nullptr)
    return fail(unknown_unit(a == nullptr ? from : to));
  if (a->dimension != b->dimension)
    return fail(errc::invalid_argument, std::string{from} + " is a unit of "
                                          + std::string{a->dimension} + " but " + std::string{to}
                                          + " is one of " + std::string{b->dimension});
  auto out = rounded((value * a->factor + a->offset - b->offset) / b->factor);
  if (!std::isfinite(out))
    return fail(errc::invalid_argument, "the result is beyond what a number can hold");
  return out;
}

}  // namespace troupe

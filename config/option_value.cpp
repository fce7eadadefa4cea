#include "config/option_value.hpp"

#include "runtime/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr std::array<unit, 7> time_units{
  {{"", 1}, {"ms", 0.001}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3'600}, {"d", 86'400}}};

constexpr std::array<unit, 14> byte_units{{{"", 1},
                                           {"B", 1},
                                           {"k", 1e3},
                                           {"kB", 1e3},
                                           {"KB", 1e3},
                                           {"KiB", 1024.0},
                                           {"M", 1e6},
                                           {"MB", 1e6},
                                           {"MiB", 1048576.0},
                                           {"G", 1e9},
                                           {"GB", 1e9},
                                           {"GiB", 1073741824.0},
                                           {"TB", 1e12},
                                           {"TiB", 1099511627776.0}}};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number x{};
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (failed != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return x;
}

std::optional<double> parse_real(std::string_view text) {
  auto x = parse_number<double>(text);
  return x && std::isfinite(*x) ? x : std::nullopt;
}

template <std::size_t N>
std::optional<double> parse_quantity(std::string_view text, const std::array<unit, N>& units) {
  auto split = std::min(text.find_last_of("0123456789.") + 1, text.size());
  auto name = trim(text.substr(split));
  auto number = parse_real(trim(text.substr(0, split)));
  auto u = std::find_if(units.begin(), units.end(), [&](const unit& x) { return x.name == name; });
  if (!number || *number < 0 || u == units.end())
    return std::nullopt;
  return *number * u->factor;
}

std::optional<bool> parse_boolean(std::string_view text) {
  for (auto yes : {"true", "yes", "on", "1"})
    if (text == yes)
      return true;
  for (auto no : {"false", "no", "off", "0"})
    if (text == no)
      return false;
  return std::nullopt;
}

std::vector<std::string> split_commas(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (std::string_view rest : words)
    while (true) {
      auto comma = rest.find(',');
      if (auto part = trim(rest.substr(0, comma)); !part.empty())
        parts.emplace_back(part);
      if (comma == std::string_view::npos)
        break;
      rest.remove_prefix(comma + 1);
    }
  return parts;
}

bool in_range(const option_spec& spec, double x) {
  return spec.least == spec.most || (x >= spec.least && x <= spec.most);
}

/// A number of seconds as one would type it.
std::string seconds_text(double s) {
  for (const auto& u : {unit{"d", 86'400}, unit{"h", 3'600}, unit{"m", 60}, unit{"s", 1}})
    if (s >= u.factor && std::fmod(s, u.factor) == 0)
      return fmt::format("{}{}", s / u.factor, u.name);
  return s == 0 ? "0" : fmt::format("{}ms", s * 1000);
}

std::string bytes_text(double b) {
  for (const auto& u : {unit{"TiB", 1099511627776.0}, unit{"GiB", 1073741824.0},
                        unit{"MiB", 1048576.0}, unit{"KiB", 1024.0}})
    if (b >= u.factor && std::fmod(b, u.factor) == 0)
      return fmt::format("{}{}", b / u.factor, u.name);
  return fmt::format("{}", b);
}

template <class Show>
std::string with_range(std::string what, const option_spec& spec, Show show) {
  if (spec.least != spec.most)
    what += " from " + show(spec.least) + " to " + show(spec.most);
  return what;
}

std::string number_text(double x) {
  return std::floor(x) == x && std::abs(x) < 1e16 ? fmt::format("{:.0f}", x) : fmt::format("{}", x);
}

tl::unexpected<error> misfit(const option_spec& spec, std::string_view word,
                             const std::vector<std::string_view>& near = {}) {
  return fail(errc::invalid_argument, fmt::format("'{}' is not {}{}", utf8_prefix(word, 80),
                                                  accepted_form(spec), did_you_mean(word, near)));
}

result<option_value> parse_map(const option_spec& spec, const std::vector<std::string>& words) {
  std::map<std::string, std::string> pairs;
  for (const auto& part : split_commas(words)) {
    auto eq = part.find('=');
    auto key = std::string{trim(std::string_view{part}.substr(0, eq))};
    auto value = eq == std::string::npos ? "" : std::string{trim(part).substr(eq + 1)};
    if (key.empty() || trim(value).empty())
      return misfit(spec, part);
    if (std::find(spec.choices.begin(), spec.choices.end(), key) == spec.choices.end())
      return misfit(spec, key, spec.choices);
    if (!pairs.emplace(key, trim(value)).second)
      return fail(errc::invalid_argument, fmt::format("'{}' stands there twice", key));
  }
  return pairs;
}

result<option_value> parse_word(const option_spec& spec, const std::string& word) {
  auto take = [&](auto parsed, auto measure) -> result<option_value> {
    if (!parsed || !in_range(spec, measure(*parsed)))
      return misfit(spec, word);
    return option_value{*parsed};
  };
  auto same = [](auto x) { return static_cast<double>(x); };
  switch (spec.type) {
  case option_type::whole:
    return take(parse_number<std::int64_t>(word), same);
  case option_type::real:
    return take(parse_real(word), same);
  case option_type::boolean:
    return take(parse_boolean(word), [&](bool) { return spec.least; });
  case option_type::bytes:
    return take(parse_bytes(word), same);
  case option_type::duration:
    return take(parse_duration(word),
                [](millis x) { return static_cast<double>(x.count()) / 1e3; });
  case option_type::choice:
    if (std::find(spec.choices.begin(), spec.choices.end(), word) == spec.choices.end())
      return misfit(spec, word, spec.choices);
    return word;
  default:
    if (!is_utf8(word) || word.find('\0') != std::string::npos)
      return fail(errc::invalid_argument, "the text is not valid UTF-8");
    return word;
  }
}

}  // namespace

std::optional<millis> parse_duration(std::string_view text) {
  auto s = parse_quantity(text, time_units);
  if (!s || *s > 1e12)
    return std::nullopt;
  return millis{std::llround(*s * 1000)};
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  auto b = parse_quantity(text, byte_units);
  if (!b || *b > 9e18)
    return std::nullopt;
  return std::llround(*b);
}

std::string accepted_form(const option_spec& spec) {
  switch (spec.type) {
  case option_type::text:
    return "a text";
  case option_type::whole:
    return with_range("a whole number", spec, number_text);
  case option_type::real:
    return with_range("a number", spec, number_text);
  case option_type::boolean:
    return "true or false";
  case option_type::duration:
    return with_range("a time such as 250ms, 90s, 1.5m or 2h", spec, seconds_text);
  case option_type::bytes:
    return with_range("a size such as 512MiB or 1GB", spec, bytes_text);
  case option_type::choice:
    return fmt::format("one of {}", fmt::join(spec.choices, ", "));
  case option_type::list:
    return "a list separated by commas";
  case option_type::paths:
    return "a file or an address, as often as there are some";
  case option_type::map:
    return fmt::format("a list such as {0}=name, of {1}", spec.choices.front(),
                       fmt::join(spec.choices, ", "));
  }
  return "a text";
}

result<option_value> parse_option(const option_spec& spec, const std::vector<std::string>& words) {
  if (spec.type == option_type::list)
    return split_commas(words);
  if (spec.type == option_type::paths)
    return words;
  if (spec.type == option_type::map)
    return parse_map(spec, words);
  if (words.empty() && spec.type == option_type::boolean)
    return true;
  if (words.size() != 1)
    return fail(errc::invalid_argument,
                words.empty() ? "no value given; it takes " + accepted_form(spec)
                              : fmt::format("{} values given; it takes one", words.size()));
  return parse_word(spec, words.front());
}

}  // namespace troupe

#include "runtime/model/rate_headers.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/http_wait.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe {
namespace {

using headers_t = std::vector<std::pair<std::string, std::string>>;

constexpr double longest_ms = 30.0 * 86'400'000;
constexpr double most = 1e15;  // beyond it no allowance is meant, and sums lose what is added

/// A plain decimal number that is not negative, at the front of `text`, which loses it.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  auto [end, ec] =
    std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (ec != std::errc{} || !std::isfinite(value) || value < 0)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> number(std::string_view text) {
  text = trim(text);
  auto value = take_number(text);
  return text.empty() ? value : std::nullopt;
}

/// Milliseconds in the unit at the front of `text`, which loses it; 0: there is none.
double take_unit(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> units{{{"ms", 1},
                                                                      {"us", 1e-3},
                                                                      {"\u00b5s", 1e-3},
                                                                      {"s", 1e3},
                                                                      {"m", 6e4},
                                                                      {"h", 3.6e6},
                                                                      {"d", 8.64e7}}};
  for (auto [name, ms] : units)
    if (text.starts_with(name)) {
      text.remove_prefix(name.size());
      return ms;
    }
  return 0;
}

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  if (text.size() < at + count)
    return std::nullopt;
  auto* begin = text.data() + at;
  auto [end, ec] = std::from_chars(begin, begin + count, value);
  return ec == std::errc{} && end == begin + count && value >= 0 ? std::optional{value}
                                                                 : std::nullopt;
}

/// Minutes east of Greenwich at the end of a date.
std::optional<int> zone(std::string_view text) {
  if (text == "Z" || text == "z")
    return 0;
  auto hours = digits(text, 1, 2);
  auto minutes = digits(text, 4, 2);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' || !hours
      || !minutes)
    return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (*hours * 60 + *minutes);
}

std::optional<millis> until(std::string_view date, const headers_t& headers) {
  auto when = parse_rfc3339(date);
  if (!when)
    return std::nullopt;
  auto now = wall_micros() / 1'000'000;
  for (auto& [name, value] : headers)
    if (name == "date")
      now = parse_http_date(trim(value)).value_or(now);
  auto ms = static_cast<double>(*when - now) * 1e3;
  return ms > longest_ms ? std::nullopt
                         : std::optional{millis{static_cast<millis::rep>(std::max(ms, 0.0))}};
}

enum class word_part : std::uint8_t { limit, remaining, reset };

std::optional<word_part> part_of(std::string_view name) {
  if (name == "limit")
    return word_part::limit;
  if (name == "remaining")
    return word_part::remaining;
  return name == "reset" ? std::optional{word_part::reset} : std::nullopt;
}

std::optional<rate_quantity> quantity_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, rate_quantity>, 4> names{
    {{"requests", rate_quantity::requests},
     {"tokens", rate_quantity::tokens},
     {"input-tokens", rate_quantity::input_tokens},
     {"output-tokens", rate_quantity::output_tokens}}};
  for (auto [n, q] : names)
    if (n == name)
      return q;
  return std::nullopt;
}

rate_word& word_for(rate_report& out, rate_quantity of) {
  for (auto& w : out)
    if (w.of == of)
      return w;
  return out.emplace_back(rate_word{.of = of});
}

void read_part(rate_report& out, std::string_view quantity, std::string_view part,
               std::string_view value, const headers_t& headers) {
  auto of = quantity_of(quantity);
  auto which = part_of(part);
  if (!of || !which)
    return;
  auto& word = word_for(out, *of);
  if (which == word_part::limit)
    word.limit = std::min(number(value).value_or(-1), most);
  else if (which == word_part::remaining)
    word.remaining = std::min(number(value).value_or(-1), most);
  else if (auto span = parse_span(value))
    word.reset = *span;
  else if (auto left = until(trim(value), headers)) {
    word.reset = *left;
    word.from_answer = true;
  }
}

}  // namespace

std::optional<millis> parse_span(std::string_view text) {
  text = trim(text);
  double ms = 0;
  if (auto bare = number(text)) {
    ms = *bare * 1e3;
    text = {};
  } else if (text.empty()) {
    return std::nullopt;
  }
  while (!text.empty()) {
    auto value = take_number(text);
    auto unit = value ? take_unit(text) : 0;
    if (unit == 0)
      return std::nullopt;
    ms += *value * unit;
  }
  return ms <= longest_ms ? std::optional{millis{static_cast<millis::rep>(std::ceil(ms))}}
                          : std::nullopt;
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  auto year = digits(text, 0, 4);
  auto month = digits(text, 5, 2);
  auto day = digits(text, 8, 2);
  auto hour = digits(text, 11, 2);
  auto minute = digits(text, 14, 2);
  auto second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || text[4] != '-' || text[7] != '-'
      || (text[10] != 'T' && text[10] != 't') || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  text.remove_prefix(19);
  auto fraction = text.starts_with('.');
  if (fraction)
    text.remove_prefix(std::min(text.find_first_not_of("0123456789", 1), text.size()));
  auto east = zone(text);
  std::chrono::year_month_day date{std::chrono::year{*year},
                                   std::chrono::month{static_cast<unsigned>(*month)},
                                   std::chrono::day{static_cast<unsigned>(*day)}};
  if (!east || !date.ok() || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  std::chrono::seconds moment = std::chrono::sys_days{date}.time_since_epoch()
                                + std::chrono::hours{*hour} + std::chrono::minutes{*minute - *east}
                                + std::chrono::seconds{*second + (fraction ? 1 : 0)};
  return moment.count();
}

rate_report rates_stated(const headers_t& headers) {
  constexpr std::string_view openai = "x-ratelimit-";
  constexpr std::string_view anthropic = "anthropic-ratelimit-";
  rate_report out;
  for (auto& [name, value] : headers) {
    std::string_view n = name;
    if (n.starts_with(openai)) {
      n.remove_prefix(openai.size());
      auto dash = n.find('-');
      if (dash != n.npos)
        read_part(out, n.substr(dash + 1), n.substr(0, dash), value, headers);
    } else if (n.starts_with(anthropic)) {
      n.remove_prefix(anthropic.size());
      auto dash = n.rfind('-');
      if (dash != n.npos)
        read_part(out, n.substr(0, dash), n.substr(dash + 1), value, headers);
    }
  }
  return out;
}

}  // namespace troupe

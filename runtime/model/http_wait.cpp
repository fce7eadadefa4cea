#include "runtime/model/http_wait.hpp"

#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe {
namespace {

using headers_t = std::vector<std::pair<std::string, std::string>>;

constexpr millis longest = std::chrono::hours{24 * 30};

const std::string* find_header(const headers_t& headers, std::string_view name) {
  auto it = std::find_if(headers.begin(), headers.end(), [&](auto& h) { return h.first == name; });
  return it == headers.end() ? nullptr : &it->second;
}

std::optional<int> digits(std::string_view text) {
  int value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty() || value < 0)
    return std::nullopt;
  return value;
}

/// A plain decimal number of `unit`s, clamped. Nothing for anything else.
std::optional<millis> span_of(std::string_view text, double unit_ms) {
  text = trim(text);
  double value = 0;
  auto [end, ec] =
    std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (ec != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  auto ms = std::ceil(std::max(value, 0.0) * unit_ms);
  return ms >= static_cast<double>(longest.count()) ? longest
                                                    : millis{static_cast<millis::rep>(ms)};
}

std::optional<millis> until_date(std::string_view text, const headers_t& headers) {
  auto when = parse_http_date(trim(text));
  if (!when)
    return std::nullopt;
  auto* date = find_header(headers, "date");
  auto sent = date ? parse_http_date(trim(*date)) : std::nullopt;
  auto now = sent.value_or(wall_micros() / 1'000'000);
  auto seconds = std::clamp<std::int64_t>(*when - now, 0, longest / std::chrono::seconds{1});
  return std::chrono::seconds{seconds};
}

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" || text[19] != ':'
      || text[22] != ':')
    return std::nullopt;
  auto month = std::find(months.begin(), months.end(), text.substr(8, 3));
  auto day = digits(text.substr(5, 2));
  auto year = digits(text.substr(12, 4));
  auto hour = digits(text.substr(17, 2));
  auto minute = digits(text.substr(20, 2));
  auto second = digits(text.substr(23, 2));
  if (month == months.end() || !day || !year || !hour || !minute || !second)
    return std::nullopt;
  std::chrono::year_month_day date{
    std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(month - months.begin()) + 1},
    std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  std::chrono::seconds moment = std::chrono::sys_days{date}.time_since_epoch()
                                + std::chrono::hours{*hour} + std::chrono::minutes{*minute}
                                + std::chrono::seconds{*second};
  return moment.count();
}

std::optional<millis> wait_asked(const headers_t& headers) {
  if (auto* ms = find_header(headers, "retry-after-ms"))
    if (auto span = span_of(*ms, 1))
      return span;
  auto* after = find_header(headers, "retry-after");
  if (!after)
    return std::nullopt;
  if (auto span = span_of(*after, 1000))
    return span;
  return until_date(*after, headers);
}

}  // namespace troupe

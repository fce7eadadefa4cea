#include "runtime/model/mock_limits.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace troupe {
namespace {

constexpr double minute_ms = 60'000;

std::array<double, 4> amounts(const token_usage& cost) {
  return {1, static_cast<double>(cost.total()), static_cast<double>(cost.input),
          static_cast<double>(cost.output)};
}

/// RFC 3339, whole seconds, UTC.
std::string rfc3339(std::int64_t wall) {
  auto seconds = static_cast<std::time_t>((wall + 999'999) / 1'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  auto n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), n};
}

}  // namespace

mock_limits::mock_limits(const mock_limit_settings& s, time_point now)
  : settings_{s}, buckets_{{{"requests", s.requests},
                            {"tokens", s.tokens},
                            {"input-tokens", s.input_tokens},
                            {"output-tokens", s.output_tokens}}},
    filled_{now} {
  for (auto& b : buckets_) {
    auto share = static_cast<double>(s.burst.count()) / minute_ms;
    b.capacity = std::max(1.0, static_cast<double>(b.limit) * share);
    b.level = b.capacity;
  }
}

millis mock_limits::bucket::until(double wanted) const {
  if (wanted <= level)
    return millis{0};
  auto ms = std::ceil((wanted - level) * minute_ms / static_cast<double>(limit));
  return millis{static_cast<millis::rep>(ms)};
}

void mock_limits::refill(time_point now) {
  auto ms = std::chrono::duration<double, std::milli>(now - filled_).count();
  if (ms <= 0)
    return;
  filled_ = now;
  for (auto& b : buckets_)
    b.level = std::min(b.capacity, b.level + static_cast<double>(b.limit) * ms / minute_ms);
}

std::optional<mock_denial> mock_limits::lacking(const token_usage& cost,
                                                std::uint64_t in_flight) const {
  if (settings_.concurrent > 0 && in_flight >= settings_.concurrent)
    return mock_denial{"concurrent requests", settings_.concurrent, 0, 1, millis{1000}};
  auto wanted = amounts(cost);
  std::optional<mock_denial> worst;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    auto& b = buckets_[i];
    // A bucket that is within a rounding error of enough has enough.
    if (!b.used() || wanted[i] <= b.level + 1e-6)
      continue;
    mock_denial found{b.name, b.limit, static_cast<std::uint64_t>(b.level),
                      static_cast<std::uint64_t>(wanted[i]), b.until(wanted[i])};
    if (wanted[i] > b.capacity)
      found.wait.reset();
    if (!worst || !found.wait || (worst->wait && *found.wait > *worst->wait))
      worst = found;
  }
  return worst;
}

std::optional<mock_denial> mock_limits::admit(const token_usage& cost, std::uint64_t in_flight,
                                              time_point now, rng& random) {
  if (!settings_.any())
    return std::nullopt;
  refill(now);
  auto denied = lacking(cost, in_flight);
  if (denied && (settings_.reject >= 1 || random.uniform() < settings_.reject))
    return denied;
  auto paid = amounts(cost);
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    buckets_[i].level = std::max(0.0, buckets_[i].level - paid[i]);
  return std::nullopt;
}

header_list mock_limits::headers(wire_format wire, time_point now, std::int64_t wall) const {
  header_list out;
  if (!settings_.headers || !settings_.any())
    return out;
  auto current = *this;
  current.refill(now);
  auto add = [&](const std::string& name, std::string value) {
    out.emplace_back(name, std::move(value));
  };
  for (auto& b : current.buckets_) {
    auto anthropic = wire == wire_format::anthropic;
    if (!b.used() || (!anthropic && &b > &current.buckets_[1]))
      continue;
    auto limit = std::to_string(b.limit);
    auto left = std::to_string(static_cast<std::uint64_t>(b.level));
    auto full = b.until(b.capacity);
    if (anthropic) {
      auto prefix = "anthropic-ratelimit-" + std::string{b.name};
      add(prefix + "-limit", limit);
      add(prefix + "-remaining", left);
      add(prefix + "-reset", rfc3339(wall + micros{full}.count()));
    } else {
      add("x-ratelimit-limit-" + std::string{b.name}, limit);
      add("x-ratelimit-remaining-" + std::string{b.name}, left);
      add("x-ratelimit-reset-" + std::string{b.name}, openai_span(full));
    }
  }
  return out;
}

void add_retry_after(header_list& out, wire_format wire, millis wait) {
  out.emplace_back("retry-after", std::to_string((wait.count() + 999) / 1000));
  if (wire != wire_format::anthropic)
    out.emplace_back("retry-after-ms", std::to_string(wait.count()));
}

std::string openai_span(millis span) {
  auto ms = span.count();
  if (ms < 1000)
    return std::to_string(ms) + "ms";
  std::string out;
  if (ms >= 3'600'000)
    out += std::to_string(ms / 3'600'000) + "h";
  if (ms >= 60'000)
    out += std::to_string(ms / 60'000 % 60) + "m";
  out += std::to_string(ms / 1000 % 60);
  if (auto rest = ms % 1000; rest > 0) {
    auto digits = std::to_string(1000 + rest).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += "." + digits;
  }
  return out + "s";
}

}  // namespace troupe

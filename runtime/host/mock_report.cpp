#include "runtime/host/mock_report.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

/// From here on the server, and not its client, is what is measured.
constexpr double saturated = 0.85;

double seconds(micros span) {
  return static_cast<double>(span.count()) / 1e6;
}

double per(double total, double n) {
  return n > 0 ? total / n : 0;
}

std::string statuses(const mock_stats& before, const mock_stats& now) {
  std::string out;
  for (auto& [status, n] : now.by_status) {
    auto it = before.by_status.find(status);
    auto fresh = n - (it == before.by_status.end() ? 0 : it->second);
    if (fresh > 0)
      out += fmt::format("{}{}: {}", out.empty() ? "" : ", ",
                         status == 0 ? "no answer" : std::to_string(status), fresh);
  }
  return out.empty() ? "no requests" : out;
}

double cpu_per_request(const mock_stats& before, const mock_stats& now) {
  return per(static_cast<double>((now.cpu - before.cpu).count()),
             static_cast<double>(now.requests - before.requests));
}

double rate(const mock_stats& before, const mock_stats& now) {
  return per(static_cast<double>(now.requests - before.requests), seconds(now.wall - before.wall));
}

std::string cost(const mock_stats& before, const mock_stats& now) {
  auto share = saturation(before, now);
  return fmt::format("CPU {:.0f} % of its core, {:.1f} us a request, lag {:.1f} ms{}", share * 100,
                     cpu_per_request(before, now),
                     static_cast<double>(now.worst_lag.count()) / 1000,
                     share >= saturated ? "; SATURATED: it is the bottleneck" : "");
}

}  // namespace

double saturation(const mock_stats& before, const mock_stats& now) {
  return per(seconds(now.cpu - before.cpu), seconds(now.wall - before.wall));
}

std::string stats_line(const mock_stats& before, const mock_stats& now) {
  return fmt::format("{:.1f} s: {:.0f} requests/s ({}), {} in flight, {}", seconds(now.wall),
                     rate(before, now), statuses(before, now), now.in_flight, cost(before, now));
}

std::string stats_summary(const mock_stats& all) {
  auto out =
    fmt::format("{} requests in {:.1f} s ({}), {} streams, {} connections, at most {} in "
                "flight\n{} tokens in, {} out\n{}\n",
                all.requests, seconds(all.wall), statuses({}, all), all.streams, all.connections,
                all.peak_in_flight, all.tokens.input, all.tokens.output, cost({}, all));
  if (all.limited > 0)
    out += fmt::format("{} turned away by the limits\n", all.limited);
  for (std::size_t i = 0; i < all.faults.size(); ++i)
    if (all.faults[i] > 0)
      out += fmt::format("fault {}: {}\n", to_string(static_cast<fault_kind>(i)), all.faults[i]);
  return out;
}

json stats_json(const mock_stats& before, const mock_stats& now) {
  json out{{"requests", now.requests - before.requests},
           {"seconds", seconds(now.wall - before.wall)},
           {"requests_per_second", rate(before, now)},
           {"streams", now.streams - before.streams},
           {"limited", now.limited - before.limited},
           {"in_flight", now.in_flight},
           {"peak_in_flight", now.peak_in_flight},
           {"connections", now.connections - before.connections},
           {"tokens",
            {{"input", now.tokens.input - before.tokens.input},
             {"output", now.tokens.output - before.tokens.output}}},
           {"cpu_us", (now.cpu - before.cpu).count()},
           {"cpu_us_per_request", cpu_per_request(before, now)},
           {"saturation", saturation(before, now)},
           {"worst_lag_us", now.worst_lag.count()},
           {"status", json::object()},
           {"faults", json::object()}};
  for (auto& [status, n] : now.by_status) {
    auto it = before.by_status.find(status);
    out["status"][std::to_string(status)] = n - (it == before.by_status.end() ? 0 : it->second);
  }
  for (std::size_t i = 0; i < now.faults.size(); ++i)
    if (auto n = now.faults[i] - before.faults[i]; n > 0)
      out["faults"][std::string{to_string(static_cast<fault_kind>(i))}] = n;
  return out;
}

}  // namespace troupe

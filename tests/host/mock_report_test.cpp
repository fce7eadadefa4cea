#include "runtime/host/mock_report.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

mock_stats busy() {
  mock_stats s;
  s.requests = 40'000;
  s.by_status = {{0, 5}, {200, 39'000}, {429, 995}};
  s.limited = 995;
  s.faults[static_cast<std::size_t>(fault_kind::reset)] = 5;
  s.wall = 2s;
  s.cpu = 1s;
  s.worst_lag = 1500us;
  s.in_flight = 7;
  return s;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

}  // namespace

TEST_CASE("a line counts from the line before", "[mock_report]") {
  auto first = busy();
  auto second = first;
  second.requests += 1000;
  second.by_status[200] += 1000;
  second.wall += 1s;
  second.cpu += 30ms;
  auto line = stats_line(first, second);
  has(line, "3.0 s: 1000 requests/s (200: 1000), 7 in flight");
  has(line, "CPU 3 % of its core, 30.0 us a request, lag 1.5 ms");
  CHECK(line.find("SATURATED") == std::string::npos);
  has(stats_line(second, second), "no requests");
}

TEST_CASE("a server at its limit says so", "[mock_report]") {
  auto before = busy();
  auto now = before;
  now.wall += 1s;
  now.cpu += 900ms;
  CHECK(saturation(before, now) > 0.89);
  has(stats_line(before, now), "SATURATED");
}

TEST_CASE("the summary and the JSON hold all of it", "[mock_report]") {
  auto text = stats_summary(busy());
  has(text, "40000 requests in 2.0 s (no answer: 5, 200: 39000, 429: 995)");
  has(text, "995 turned away by the limits");
  has(text, "fault reset: 5");
  auto data = stats_json({}, busy());
  CHECK(data["status"]["429"] == 995);
  CHECK(data["faults"]["reset"] == 5);
  CHECK(data["saturation"] == 0.5);
  CHECK(data["cpu_us_per_request"] == 25.0);
}

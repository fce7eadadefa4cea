// Not run by CTest: jail_test "[bench]" prints what a sandbox costs on this machine.

#include "tests/jail/jail_fixture.hpp"

#include <algorithm>
#include <cstdio>

using namespace troupe;
using namespace troupe::test;

namespace {

double since_ms(time_point start) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

void print_figures(const char* what, std::vector<double> ms) {
  std::ranges::sort(ms);
  auto at = [&](double q) {
    return ms[static_cast<std::size_t>(q * static_cast<double>(ms.size() - 1))];
  };
  std::printf("%-28s min %8.3f  p50 %8.3f  p99 %8.3f ms  (n=%zu)\n", what, ms.front(), at(0.5),
              at(0.99), ms.size());
}

}  // namespace

TEST_CASE("bench: what a sandbox costs", "[.][bench]") {
  jail_fixture fx;
  static_cast<void>(fx.open());  // the zygote starts
  std::vector<double> first, ready, later, gone;
  for (int i = 0; i < 100; ++i) {
    auto start = steady_clock::now();
    auto s = fx.open();
    ready.push_back(since_ms(start));
    REQUIRE(tagged(fx.run(*s, "1+1")) == "2");
    first.push_back(since_ms(start));
    for (int k = 0; k < 20; ++k) {
      start = steady_clock::now();
      REQUIRE(tagged(fx.run(*s, "1+1")) == "2");
      later.push_back(since_ms(start));
    }
    auto report = fx.close(*s);
    REQUIRE(report.clean());
    gone.push_back(static_cast<double>(report.teardown.count()) / 1000);
  }
  print_figures("open, until ready", ready);
  print_figures("open to first result", first);
  print_figures("later round trip", later);
  print_figures("kill to verified gone", gone);
}

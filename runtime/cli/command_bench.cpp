#include "runtime/cli/commands.hpp"
#include "runtime/core/text.hpp"
#include "runtime/host/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace troupe::cli {
namespace {

std::string help() {
  std::string text = "usage: troupe bench [NAME...]\n\nMeasures all of these, or those named:\n";
  for (const auto& b : benches())
    text += fmt::format("  {:8} {}\n", b.name, b.help);
  return text;
}

}  // namespace

int bench_command(const words& arguments) {
  if (wants_help(arguments)) {
    std::fputs(help().c_str(), stdout);
    return done;
  }
  std::vector<std::string_view> names;
  for (const auto& b : benches())
    names.push_back(b.name);
  for (const auto& a : arguments)
    if (find_bench(a) == nullptr)
      return complain(usage, "there is no bench '" + a + "'" + did_you_mean(a, names));
  std::fputs(bench_heading().c_str(), stdout);
  auto good = true;
  for (const auto& b : benches()) {
    if (!arguments.empty()
        && std::find(arguments.begin(), arguments.end(), b.name) == arguments.end())
      continue;
    auto lines = b.run();
    if (!lines) {
      good = false;
      complain(failed, std::string{b.name} + ": " + lines.error().detail);
      continue;
    }
    std::fputs(lines->c_str(), stdout);
    std::fflush(stdout);
  }
  return good ? done : failed;
}

}  // namespace troupe::cli

#include "runtime/cli/commands.hpp"
#include "runtime/host/doctor.hpp"
#include "runtime/host/leaks.hpp"

#include <cstdio>

#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr const char* help =
  "usage: troupe doctor [--json] | --leaks [--yes]\n\n"
  "What of troupe works on this machine, and the mend of what does not.\n"
  "--leaks looks for what earlier runs have left, and removes it when you agree (--yes does).\n";

/// Asks on a terminal; elsewhere nobody can agree.
bool agreed() {
  if (::isatty(STDIN_FILENO) == 0)
    return false;
  std::fputs("Remove what can be removed? [y/N] ", stdout);
  std::fflush(stdout);
  auto answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

int look_for_leaks(bool remove) {
  auto all = find_leaks();
  if (all.empty()) {
    std::puts("no leftovers");
    return done;
  }
  for (const auto& one : all)
    std::printf("%s%s\n", one.what.c_str(), one.removable ? "" : "  (still in use, or not yours)");
  if (!remove && !agreed()) {
    std::puts("nothing was removed; --yes removes what can be removed");
    return failed;
  }
  auto left = 0;
  for (const auto& one : all)
    if (!remove_leak(one)) {
      std::printf("still there: %s\n", one.what.c_str());
      ++left;
    }
  std::printf("%zu removed\n", all.size() - static_cast<std::size_t>(left));
  return left == 0 ? done : failed;
}

}  // namespace

int doctor_command(const words& arguments) {
  if (wants_help(arguments)) {
    std::fputs(help, stdout);
    return done;
  }
  if (arguments == words{"--leaks"} || arguments == words{"--leaks", "--yes"})
    return look_for_leaks(arguments.size() == 2);
  auto as_json = arguments == words{"--json"};
  if (!arguments.empty() && !as_json)
    return complain(usage, "doctor takes --json, --leaks, --leaks --yes or nothing");
  auto findings = examine_machine();
  if (as_json)
    std::puts(dump_json(to_json(findings)).c_str());
  else
    std::fputs(show(findings).c_str(), stdout);
  return all_needed_work(findings) ? done : failed;
}

}  // namespace troupe::cli

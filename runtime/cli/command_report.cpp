#include "runtime/cli/commands.hpp"
#include "runtime/eval/report.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::cli {
namespace {

constexpr const char* help =
  "usage: troupe report JOURNAL [--json]\n\n"
  "Accuracy with its uncertainty, ends by kind, tokens, times, sandboxes.\n"
  "Works while the batch is still running.\n";

}  // namespace

int print_report(const std::string& path, bool as_json) {
  auto store = journal::open_readonly(path);
  if (!store)
    return complain(usage, store.error().detail);
  auto batch = (*store)->batch();
  auto results = (*store)->results();
  if (!batch || !results)
    return complain(failed, batch ? results.error().detail : batch.error().detail);
  auto report = make_report(*batch, *results);
  std::fputs(as_json ? (dump_json(to_json(report)) + "\n").c_str() : to_text(report).c_str(),
             stdout);
  return done;
}

int report_command(const words& arguments) {
  words rest = arguments;
  if (wants_help(arguments)) {
    std::fputs(help, stdout);
    return done;
  }
  auto as_json = std::erase(rest, "--json") > 0;
  if (rest.size() != 1)
    return complain(usage, "report takes one journal; see troupe report --help");
  if (rest[0].starts_with('-'))
    return complain(usage, "there is no option '" + rest[0] + "'; report knows --json");
  return print_report(rest[0], as_json);
}

}  // namespace troupe::cli

#include "runtime/cli/commands.hpp"
#include "runtime/core/text.hpp"
#include "runtime/eval/trace.hpp"
#include "runtime/journal/journal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr const char* help =
  "usage: troupe trace JOURNAL ID [--run N] [--full] [--json]\n\n"
  "The timeline of the newest run of sample ID, or of run number N of the batch.\n"
  "--full shows all text uncut.\n";

struct wanted {
  std::string journal;
  std::string sample;
  run_id run;
  bool full = false;
  bool json = false;
};

/// Errors  invalid_argument: what is wrong with the words.
result<wanted> read_words(const words& arguments) {
  wanted w;
  words rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& a = arguments[i];
    if (a == "--full") {
      w.full = true;
    } else if (a == "--json") {
      w.json = true;
    } else if (a == "--run" && i + 1 < arguments.size()) {
      const auto& n = arguments[++i];
      auto [end, bad] = std::from_chars(n.data(), n.data() + n.size(), w.run.value);
      if (bad != std::errc{} || end != n.data() + n.size() || !w.run)
        return fail(errc::invalid_argument, "--run takes a run's number, not '" + n + "'");
    } else if (a.starts_with("--")) {
      return fail(errc::invalid_argument, "there is no option '" + a + "'"
                                            + did_you_mean(a, {"--full", "--json", "--run"}));
    } else {
      rest.push_back(a);
    }
  }
  if (rest.size() != 2 && !(rest.size() == 1 && w.run))
    return fail(errc::invalid_argument,
                "trace takes a journal and a sample's id; see troupe trace --help");
  w.journal = rest[0];
  if (rest.size() == 2)
    w.sample = rest[1];
  return w;
}

/// The newest run of the sample.
/// Errors  not_found: with the nearest id of those that have results.
result<run_id> find_run(const journal& store, const std::string& sample,
                        const std::vector<run_result>& results) {
  auto runs = store.runs_of(sample);
  if (!runs)
    return fail(runs.error());
  if (!runs->empty())
    return runs->front();
  std::set<std::string> ids;
  for (const auto& r : results)
    ids.insert(r.sample_id);
  return fail(errc::not_found, "there is no run of sample '" + sample + "'"
                                 + did_you_mean(sample, {ids.begin(), ids.end()}));
}

trace_options look(const wanted& w) {
  trace_options o;
  o.full = w.full;
  auto* no_color = std::getenv("NO_COLOR");
  o.color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    o.width = size.ws_col;
  return o;
}

int print_trace(const wanted& w) {
  auto store = journal::open_readonly(w.journal);
  if (!store)
    return complain(usage, store.error().detail);
  auto results = (*store)->results();
  if (!results)
    return complain(failed, results.error().detail);
  auto run = w.run ? result<run_id>{w.run} : find_run(**store, w.sample, *results);
  if (!run)
    return complain(usage, run.error().detail);
  auto events = (*store)->events(*run);
  if (!events)
    return complain(failed, events.error().detail);
  if (events->empty())
    return complain(usage,
                    "there is no run " + std::to_string(run->value) + " in '" + w.journal + "'");
  auto children = [&](run_id which) {
    return (*store)->events(which).value_or(std::vector<journal_event>{});
  };
  if (w.json) {
    std::puts(dump_json(trace_json(*events, children)).c_str());
    return done;
  }
  std::optional<run_result> ended;
  auto it = std::find_if(results->begin(), results->end(),
                         [&](const run_result& r) { return r.run == *run; });
  if (it != results->end())
    ended = *it;
  std::fputs(render_trace(*events, ended, look(w), children).c_str(), stdout);
  return done;
}

}  // namespace

int trace_command(const words& arguments) {
  if (wants_help(arguments)) {
    std::fputs(help, stdout);
    return done;
  }
  auto w = read_words(arguments);
  if (!w)
    return complain(usage, w.error().detail);
  return print_trace(*w);
}

}  // namespace troupe::cli

#include "config/limits_file.hpp"
#include "runtime/cli/arguments.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/progress.hpp"
#include "runtime/cli/signals.hpp"
#include "runtime/eval/printable.hpp"
#include "runtime/eval/report.hpp"
#include "runtime/host/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <unistd.h>

namespace troupe::cli {
namespace {

using namespace std::chrono_literals;

constexpr millis limits_interval = 1s;

/// Draws the progress line: over itself on a terminal, every ten seconds in a pipe, never if quiet.
class progress_display {
public:
  progress_display(const progress& state, const output_options& how)
    : state_{state}, quiet_{how.quiet || how.json}, terminal_{isatty(STDERR_FILENO) == 1} {}

  [[nodiscard]] millis interval() const { return terminal_ ? 200ms : 10s; }

  void draw() {
    if (quiet_)
      return;
    auto line = state_.line(steady_clock::now());
    if (terminal_)
      std::fprintf(stderr, "\r\033[K%s", line.c_str());
    else
      std::fprintf(stderr, "%s\n", line.c_str());
    drawn_ = true;
  }

  /// A line of its own, above the progress line.
  void say(const std::string& line) {
    std::fprintf(stderr, "%s%s\n", terminal_ && drawn_ ? "\r\033[K" : "", line.c_str());
  }

  void finish() {
    draw();
    if (terminal_ && drawn_)
      std::fputc('\n', stderr);
  }

private:
  const progress& state_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
};

/// Says what holds now, or what is wrong with the file: then what held before goes on.
void follow_limits(evaluation& work, limits_watch& limits, progress_display& display) {
  auto now = limits.changed();
  if (!now)
    return;
  if (!*now) {
    display.say("the limits stay as they are: " + now->error().detail);
    return;
  }
  work.tune(**now);
  const auto& m = (*now)->model;
  display.say(fmt::format("limits from now on: rpm {}, tpm {}, max_connections {}",
                          m.requests_per_minute, m.tokens_per_minute, m.max_connections));
}

/// Ctrl-C once: no new samples; twice: cancel.
void wait_for_end(evaluation& work, signals& events, limits_watch& limits,
                  progress_display& display) {
  int interrupts = 0;
  auto drawn = steady_clock::now();
  while (true) {
    switch (events.wait(std::min(display.interval(), limits_interval))) {
    case signals::event::woken:
      return;
    case signals::event::none:
    case signals::event::readable:
    case signals::event::nudged:
    case signals::event::writable:
      follow_limits(work, limits, display);
      if (auto now = steady_clock::now(); now - drawn >= display.interval()) {
        display.draw();
        drawn = now;
      }
      break;
    case signals::event::interrupted:
      if (++interrupts == 1) {
        display.say("stopping: no new samples, the running ones finish; Ctrl-C again cancels them");
        work.stop();
      } else {
        display.say("cancelling");
        work.cancel("cancelled by the user");
      }
    }
  }
}

int say_end(const evaluation_outcome& end, const std::string& journal_path) {
  const auto& p = end.progress;
  auto counted = fmt::format("{} of {} results are in {}", p.done, p.total, journal_path);
  if (end.end == "completed")
    return done;
  if (end.end == "journal_failed")
    return complain(failed, "the journal cannot be written: " + end.detail + "; " + counted
                              + "; make room and give the same command again to go on");
  if (end.end == "budget")
    return complain(incomplete, end.detail + "; " + counted
                                  + "; the same command with a larger budget goes on");
  if (end.end == "failed")
    return complain(failed, end.detail + "; what was finished is in " + journal_path);
  return complain(incomplete, end.end + ": " + counted + "; the same command goes on");
}

/// Says what went wrong most often, and how the samples are run again.
void say_errors(const std::string& journal_path) {
  auto store = journal::open_readonly(journal_path);
  if (!store)
    return;
  auto results = (*store)->results();
  if (!results)
    return;
  auto found = make_report({}, *results);
  auto errors = found.ends.find("error");
  if (errors == found.ends.end() || found.errors.empty())
    return;
  std::fprintf(stderr,
               "%llu of %zu runs ended as error, most often: %s\n"
               "run them again: the same command with --retry-errors\n",
               static_cast<unsigned long long>(errors->second), results->size(),
               printable_line(found.errors.front().first, 500).c_str());
}

std::string journal_path_for(const settings& s, const std::string& dataset_path) {
  if (!s.batch.out.empty())
    return s.batch.out;
  return std::filesystem::path{dataset_path}.stem().string() + ".db";
}

result<dataset> load(const settings& s, const std::string& path) {
  dataset_options how;
  how.fields = s.batch.fields;
  how.skip_bad_lines = s.batch.skip_bad_lines;
  how.limit = s.batch.limit;
  auto data = read_dataset(path, how);
  if (data && data->bad_lines > 0) {
    std::fprintf(stderr, "troupe: %llu bad lines were left out:\n",
                 static_cast<unsigned long long>(data->bad_lines));
    for (const auto& m : data->bad_messages)
      std::fprintf(stderr, "  %s\n", m.c_str());
  }
  return data;
}

}  // namespace

int eval_command(const words& arguments) {
  auto parsed = parse_arguments(
    command::eval, "eval",
    "Runs an agent on every sample of a dataset and scores the answers. "
    "Given again with the same --out it goes on where it stopped.",
    "dataset", "JSONL, .json or .csv with input, target, id, metadata, files", arguments);
  if (!parsed.ok)
    return parsed.exit_code;
  auto& given = *parsed.ok;
  if (given.explain) {
    std::fputs(explain(given.options).c_str(), stdout);
    return done;
  }
  if (given.rest.size() != 1)
    return complain(usage, "eval takes one dataset; see troupe eval --help");
  limits_watch limits{given.options.model.limits_file, given.options};
  if (auto begin = limits.changed()) {
    if (!*begin)
      return complain(usage, "limits_file: " + begin->error().detail);
    given.options = **begin;
  }
  auto data = load(given.options, given.rest[0]);
  if (!data)
    return complain(usage, data.error().detail);

  auto journal_path = journal_path_for(given.options, given.rest[0]);
  signals events;
  progress state{steady_clock::now()};
  evaluation_request request;
  request.options = given.options;
  request.data = std::move(*data);
  request.journal_path = journal_path;
  request.env = process_environment();
  request.progress = [&](const batch_progress& p) {
    state.set(p);
    return true;
  };
  request.unwanted = [&] { return events.wait(0ms) == signals::event::interrupted; };
  request.finished = [&] { events.wake(); };
  auto work = evaluation::start(std::move(request));
  if (!work)
    return complain(code_of_start(work.error()), work.error().detail);

  progress_display display{state, given.options.output};
  wait_for_end(**work, events, limits, display);
  auto end = (*work)->wait();
  state.set(end.progress);
  display.finish();
  if (given.options.output.json)
    print_report(journal_path, true);
  if (auto code = say_end(end, journal_path); code != done)
    return code;
  say_errors(journal_path);
  if (!given.options.output.quiet && !given.options.output.json)
    std::fprintf(stderr, "results: %s; see: troupe report %s\n", journal_path.c_str(),
                 journal_path.c_str());
  return done;
}

}  // namespace troupe::cli

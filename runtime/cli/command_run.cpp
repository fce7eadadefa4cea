#include "runtime/cli/arguments.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/live_output.hpp"
#include "runtime/cli/live_view.hpp"
#include "runtime/cli/signals.hpp"
#include "runtime/cli/terminal_approver.hpp"
#include "runtime/eval/image_source.hpp"
#include "runtime/eval/printable.hpp"
#include "runtime/host/evaluation.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include <unistd.h>

namespace troupe::cli {
namespace {

using namespace std::chrono_literals;

bool wants_colour(const output_options& how) {
  auto* no_color = std::getenv("NO_COLOR");
  return !how.no_color && (no_color == nullptr || *no_color == '\0') && isatty(STDERR_FILENO) == 1;
}

json as_json(const run_result& r) {
  json out{
    {"end", r.end},
    {"answer", r.answer_value.is_null() && !r.answer.empty() ? json(r.answer) : r.answer_value},
    {"turns", r.turns},
    {"snippets", r.snippets},
    {"tokens",
     {{"input", r.tokens.input}, {"output", r.tokens.output}, {"untold_replies", r.tokens.untold}}},
    {"wall_ms", static_cast<double>(r.wall.count()) / 1000.0}};
  if (!r.error.empty())
    out["error"] = r.error;
  return out;
}

/// To a pipe as it is; to a terminal without what could command it.
void print_answer(const std::string& answer) {
  auto shown = (isatty(STDOUT_FILENO) == 1 ? printable(answer) : answer) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

int say_result(const run_result& r, const output_options& how) {
  if (how.json)
    std::puts(dump_json(as_json(r)).c_str());
  else if (!r.answer.empty())
    print_answer(r.answer);
  if (!how.quiet && !how.json)
    std::fprintf(stderr, "%s: %u turns, %s%llu tokens, %.1f s\n", r.end.c_str(), r.turns,
                 r.tokens.untold > 0 ? "at least " : "",
                 static_cast<unsigned long long>(r.tokens.total()),
                 static_cast<double>(r.wall.count()) / 1e6);
  if (r.end == "success")
    return done;
  return r.error.empty() ? static_cast<int>(no_answer)
                         : complain(no_answer, printable_line(r.error, 4096));
}

/// Errors  image_from's.
result<dataset> one_task(const std::string& task, const std::vector<std::string>& images) {
  dataset d;
  d.path = "(command line)";
  d.sha256 = "";
  sample s;
  s.id = "task";
  s.input = task;
  for (const auto& name : images) {
    auto url = image_from(name);
    if (!url)
      return fail(url.error().code, "--image: " + url.error().detail);
    s.images.push_back(std::move(*url));
  }
  d.samples.push_back(std::move(s));
  return d;
}

/// Shows what comes until the run has ended; a signal cancels it.
void show_until_end(evaluation& work, signals& events, live_output& shown,
                    terminal_approver& approver) {
  for (;;) {
    switch (events.wait(1000ms, shown.waiting() ? shown.fd() : -1,
                        approver.waiting() ? STDIN_FILENO : -1)) {
    case signals::event::writable:
      shown.write_some();
      break;
    case signals::event::readable:
      approver.read_some();
      break;
    case signals::event::interrupted:
      work.cancel("cancelled by the user");
      break;
    case signals::event::woken:
      shown.finish(2000ms);
      return;
    case signals::event::nudged:
    case signals::event::none:
      break;
    }
  }
}

}  // namespace

int run_command(const words& arguments) {
  auto parsed =
    parse_arguments(command::run, "run", "Runs an agent on one task and shows what it does.",
                    "task", "what the agent shall do", arguments);
  if (!parsed.ok)
    return parsed.exit_code;
  auto& given = *parsed.ok;
  if (given.explain) {
    std::fputs(explain(given.options).c_str(), stdout);
    return done;
  }
  if (given.rest.size() != 1)
    return complain(usage, "run takes one task, in quotes; see troupe run --help");

  const auto& how = given.options.output;
  auto colour = wants_colour(how);
  std::optional<signals> events{std::in_place};
  live_output shown{STDERR_FILENO};
  terminal_approver approver{shown, [&] { events->nudge(); }};
  evaluation_request request;
  request.approve = [&](const hook_event& e, auto answer) { approver.ask(e, std::move(answer)); };
  request.options = given.options;
  request.options.batch.max_concurrency = 1;
  request.options.batch.epochs = 1;
  request.options.batch.scorer.clear();
  auto task = one_task(given.rest[0], given.options.agent.images);
  if (!task)
    return complain(code_of_start(task.error()), task.error().detail);
  request.data = std::move(*task);
  request.env = process_environment();
  request.journal_path = given.options.batch.out;
  std::error_code ec;
  if (std::filesystem::exists(request.journal_path, ec))
    return complain(usage, "run writes a new journal, and '" + request.journal_path
                             + "' is there already; give another --out");
  if (!how.quiet && !how.json)
    request.events = [&, view = live_view{colour}](const run_event& e) mutable {
      shown.add(view.show(e));
      events->nudge();
      return true;
    };
  request.unwanted = [&] { return events->wait(0ms) == signals::event::interrupted; };
  request.finished = [&] { events->wake(); };
  auto work = evaluation::start(std::move(request));
  if (!work)
    return complain(code_of_start(work.error()), work.error().detail);
  show_until_end(**work, *events, shown, approver);
  // Nobody reads: whatever is said from here on, by the log too, would block.
  if (shown.waiting() && std::freopen("/dev/null", "w", stderr) == nullptr)
    return failed;
  auto end = (*work)->wait();
  work->reset();
  events.reset();  // who waits for nobody to read our last line can end us
  if (end.end == "failed")
    return complain(failed, end.detail);
  if (end.results.empty())
    return complain(incomplete, "cancelled");
  return say_result(end.results.front(), how);
}

}  // namespace troupe::cli

#include "runtime/cli/arguments.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/signals.hpp"
#include "runtime/host/mock_report.hpp"
#include "runtime/host/mock_setup.hpp"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace troupe::cli {
namespace {

using namespace std::chrono_literals;

void print_json(std::string_view event, json members) {
  members["event"] = event;
  std::puts(dump_json(members).c_str());
  std::fflush(stdout);
}

/// The figures of a server, line by line and in the end.
class figures {
public:
  figures(mock_server& server, const output_options& how) : server_{server}, how_{how} {}

  void show_url() const {
    if (how_.json) {
      print_json("listening", {{"url", server_.url()}});
      return;
    }
    std::printf("%s\n", server_.url().c_str());
    std::fflush(stdout);
  }

  void show_line() {
    auto now = take();
    if (how_.json)
      print_json("figures", stats_json(before_, now));
    else
      std::fprintf(stderr, "%s\n", stats_line(before_, now).c_str());
    before_ = std::move(now);
  }

  void show_all() {
    auto now = take();
    now.worst_lag = worst_lag_;
    if (how_.json)
      print_json("summary", stats_json({}, now));
    else if (!how_.quiet)
      std::fputs(stats_summary(now).c_str(), stderr);
  }

private:
  mock_stats take() {
    auto now = server_.stats();
    worst_lag_ = std::max(worst_lag_, now.worst_lag);
    return now;
  }

  mock_server& server_;
  const output_options& how_;
  mock_stats before_{};
  micros worst_lag_{0};
};

/// 0: never.
millis interval(const settings& s) {
  if (s.output.quiet)
    return 0ms;
  auto on_terminal = isatty(STDERR_FILENO) == 1 && !s.output.json;
  return s.mock.stats_every.value_or(on_terminal ? 5s : 0ms);
}

}  // namespace

int mock_command(const words& arguments) {
  auto parsed = parse_arguments(
    command::mock, "mock",
    "Serves OpenAI's chat completions and Responses and Anthropic's Messages from a script, with "
    "latencies, limits and faults.",
    "script", "JSON file with replies, limits and faults; docs/mock.md describes it", arguments);
  if (!parsed.ok)
    return parsed.exit_code;
  auto& given = *parsed.ok;
  if (given.explain) {
    std::fputs(explain(given.options).c_str(), stdout);
    return done;
  }
  if (given.rest.size() > 1)
    return complain(usage, "mock takes one script; see troupe mock --help");
  signals events;
  auto server = start_mock(given.options, given.rest.empty() ? "" : given.rest[0]);
  if (!server)
    return complain(server.error().code == errc::unavailable ? failed : usage,
                    server.error().detail);
  figures shown{**server, given.options.output};
  shown.show_url();
  auto every = interval(given.options);
  while (events.wait(every > 0ms ? every : 3'600'000ms) != signals::event::interrupted)
    if (every > 0ms)
      shown.show_line();
  shown.show_all();
  return done;
}

}  // namespace troupe::cli

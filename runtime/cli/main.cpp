#include "runtime/cli/commands.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/log.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>

#include <fcntl.h>

namespace troupe::cli {
namespace {

struct command_row {
  std::string_view name;
  int (*run)(const words&);
  std::string_view help;
};

constexpr std::array<command_row, 8> commands = {{
  {"run", run_command, "one task, live"},
  {"eval", eval_command, "a dataset, wide, resumable"},
  {"init", init_command, "a commented agent file to begin with, or one from smolagents"},
  {"report", report_command, "accuracy, ends, tokens and times of a journal"},
  {"trace", trace_command, "one run's timeline"},
  {"doctor", doctor_command, "what works on this machine, and why not"},
  {"bench", bench_command, "measure overhead and throughput"},
  {"mock", mock_command, "a model server with scripted replies, limits and faults"},
}};

void print_usage(std::FILE* to) {
  std::fputs("usage: troupe <command> [options]; each command has --help\n\n", to);
  for (const auto& c : commands)
    std::fprintf(to, "  %-8.*s %.*s\n", static_cast<int>(c.name.size()), c.name.data(),
                 static_cast<int>(c.help.size()), c.help.data());
  std::fputs("\n  --version, --help\n", to);
}

int dispatch(const words& all) {
  if (all.empty()) {
    print_usage(stderr);
    return usage;
  }
  if (all[0] == "--help" || all[0] == "-h" || all[0] == "help") {
    print_usage(stdout);
    return done;
  }
  if (all[0] == "--version") {
    std::puts("troupe " TROUPE_VERSION);
    return done;
  }
  std::vector<std::string_view> names;
  for (const auto& c : commands) {
    if (c.name == all[0])
      return c.run({all.begin() + 1, all.end()});
    names.push_back(c.name);
  }
  return complain(usage, "there is no command '" + all[0] + "'" + did_you_mean(all[0], names)
                           + "; see troupe --help");
}

}  // namespace

bool wants_help(const words& arguments) {
  return std::ranges::any_of(arguments, [](auto& a) { return a == "--help" || a == "-h"; });
}

exit_code code_of_start(const error& why) {
  switch (why.code) {
  case errc::cancelled:
    return incomplete;
  case errc::timeout:
  case errc::unavailable:
  case errc::over_budget:
  case errc::internal:
    return failed;
  default:
    return usage;
  }
}

int complain(exit_code code, const std::string& line) {
  std::fprintf(stderr, "troupe: %s\n", line.c_str());
  return code;
}

}  // namespace troupe::cli

/// Whoever starts us may have closed them: what is opened next must not take their place.
static void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      return;
}

int main(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error at the write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not grow
  try {
    auto code = troupe::cli::dispatch({argv + 1, argv + argc});
    auto lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    if (lost && code == troupe::cli::done && errno != EPIPE)
      return troupe::cli::complain(troupe::cli::failed,
                                   "the output could not be written: " + troupe::errno_text(errno));
    return code;
  } catch (const std::exception& e) {
    // A bug of ours, or no memory: one line, no trace.
    return troupe::cli::complain(troupe::cli::failed, std::string{"internal error: "} + e.what());
  }
}

#pragma once
// Asks on the terminal whether an agent may do something.

#include "runtime/cli/live_output.hpp"
#include "runtime/policy/hooks.hpp"

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::cli {

/// One question at a time, in the order in which they were asked. Questions are shown by `out`;
/// the answers are lines of standard input: "y" or "yes", or a no with the rest as its reason.
class terminal_approver {
public:
  /// `wake` is called when something is to be shown; from any thread.
  terminal_approver(live_output& out, std::function<void()> wake);

  /// As an `approver`. Any thread.
  void ask(const hook_event& e, std::function<void(bool, std::string)> answer);

  /// True when a line of standard input is wanted.
  [[nodiscard]] bool waiting() const;

  /// Takes what standard input has; nobody there means no to everything. Call when it can be read.
  void read_some();

private:
  struct question {
    std::string text;
    std::function<void(bool, std::string)> answer;
  };

  void show_first();
  bool read_more();
  void settle(const std::string& line);

  live_output& out_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<question> questions_;
  std::string typed_;
};

}  // namespace troupe::cli

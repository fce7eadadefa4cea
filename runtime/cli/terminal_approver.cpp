#include "runtime/cli/terminal_approver.hpp"

#include "runtime/core/text.hpp"
#include "runtime/eval/printable.hpp"

#include <array>
#include <utility>

#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr std::size_t shown_bytes = 2'000;

std::string text_of(const hook_event& e) {
  auto what = e.at == hook_point::before_code
                ? "runs this code:\n" + string_or(e.what, "code")
                : "calls " + string_or(e.what, "tool") + " "
                    + dump_json(e.what.value("arguments", json::object()));
  return printable(cut_middle("'" + e.agent + "' " + what, shown_bytes));
}

}  // namespace

terminal_approver::terminal_approver(live_output& out, std::function<void()> wake)
  : out_{out}, wake_{std::move(wake)} {}

void terminal_approver::ask(const hook_event& e, std::function<void(bool, std::string)> answer) {
  std::lock_guard lock{mutex_};
  questions_.push_back({text_of(e), std::move(answer)});
  if (questions_.size() == 1)
    show_first();
}

bool terminal_approver::waiting() const {
  std::lock_guard lock{mutex_};
  return !questions_.empty();
}

void terminal_approver::show_first() {
  out_.add(questions_.front().text + "\nAllow it? [y/N, or why not] ");
  wake_();
}

void terminal_approver::read_some() {
  // What was typed ahead comes first: there may be nothing more to read.
  if (typed_.find('\n') == std::string::npos && !read_more()) {
    while (waiting())
      settle("nobody is there to ask");
    return;
  }
  for (auto end = typed_.find('\n'); end != std::string::npos && waiting();
       end = typed_.find('\n')) {
    auto line = typed_.substr(0, end);
    typed_.erase(0, end + 1);
    settle(line);
  }
}

/// False at the end of input.
bool terminal_approver::read_more() {
  std::array<char, 4096> bytes;
  auto size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size > 0)
    typed_.append(bytes.data(), static_cast<std::size_t>(size));
  return size > 0;
}

void terminal_approver::settle(const std::string& line) {
  std::function<void(bool, std::string)> answer;
  {
    std::lock_guard lock{mutex_};
    answer = std::move(questions_.front().answer);
    questions_.pop_front();
    if (!questions_.empty())
      show_first();
  }
  auto said = to_utf8(trim(line));
  auto yes = said == "y" || said == "Y" || said == "yes";
  auto no = said == "n" || said == "N" || said == "no";
  answer(yes, yes || no ? "" : said);
}

}  // namespace troupe::cli

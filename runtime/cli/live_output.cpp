#include "runtime/cli/live_output.hpp"

#include <climits>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <poll.h>
#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr std::size_t most_waiting = 1u << 20;

}  // namespace

void live_output::add(const std::string& text) {
  std::lock_guard lock{mutex_};
  if (left_out_ > 0 || text_.size() + text.size() > most_waiting)
    left_out_ += text.size();
  else
    text_ += text;
}

bool live_output::waiting() const {
  std::lock_guard lock{mutex_};
  return !text_.empty();
}

void live_output::write_some() {
  std::string piece;
  {
    std::lock_guard lock{mutex_};
    piece = text_.substr(0, PIPE_BUF);  // a pipe with room takes so much without blocking
  }
  auto n = ::write(fd_, piece.data(), piece.size());
  auto gone = n < 0 && errno != EAGAIN && errno != EINTR;
  std::lock_guard lock{mutex_};
  text_.erase(0, gone ? text_.size() : static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (!text_.empty() || left_out_ == 0)
    return;
  if (!gone)
    text_ = "\n[" + std::to_string(left_out_) + " bytes left out: they were not read in time]\n";
  left_out_ = 0;
}

void live_output::finish(std::chrono::milliseconds longest) {
  auto until = std::chrono::steady_clock::now() + longest;
  while (waiting()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    pollfd room{fd_, POLLOUT, 0};
    if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) <= 0)
      return;
    write_some();
  }
}

}  // namespace troupe::cli

#include "runtime/cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

void progress::set(const batch_progress& p) {
  std::lock_guard lock{mutex_};
  if (!std::exchange(seen_, true))
    first_done_ = p.done;
  now_ = p;
}

batch_progress progress::latest() const {
  std::lock_guard lock{mutex_};
  return now_;
}

std::string progress::line(time_point now) const {
  std::lock_guard lock{mutex_};
  auto seconds = std::chrono::duration<double>(now - began_).count();
  auto fresh = static_cast<double>(now_.done - first_done_);
  auto rate = seconds > 0 ? fresh / seconds : 0;
  auto out = fmt::format("{}/{} done, {} running, {} failed", now_.done, now_.total, now_.running,
                         now_.failed);
  if (now_.scored > 0)
    out += fmt::format(", accuracy {:.3f}", now_.score_sum / static_cast<double>(now_.scored));
  out += fmt::format(", {} tokens, {:.1f}/s", short_count(static_cast<double>(now_.tokens.total())),
                     rate);
  auto left = static_cast<double>(now_.total - std::min(now_.total, now_.done));
  if (rate > 0 && left > 0)
    out += ", ETA " + short_span(std::chrono::seconds{static_cast<long>(left / rate) + 1});
  return out;
}

std::string short_span(std::chrono::seconds span) {
  auto s = span.count();
  if (s >= 3600)
    return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  if (s >= 60)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

std::string short_count(double n) {
  if (n >= 1e9)
    return fmt::format("{:.2f}G", n / 1e9);
  if (n >= 1e6)
    return fmt::format("{:.2f}M", n / 1e6);
  if (n >= 1e4)
    return fmt::format("{:.1f}k", n / 1e3);
  return fmt::format("{:.0f}", n);
}

}  // namespace troupe::cli

#include "runtime/model/enforce.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// The length of the longest end of `text` that is the beginning of `stop`.
std::size_t overlap(std::string_view text, std::string_view stop) {
  auto n = std::min(text.size(), stop.empty() ? 0 : stop.size() - 1);
  while (n > 0 && !text.ends_with(stop.substr(0, n)))
    --n;
  return n;
}

}  // namespace

std::size_t find_stop(std::string_view text, const std::vector<std::string>& stops) {
  auto first = std::string_view::npos;
  for (auto& stop : stops)
    if (!stop.empty())
      first = std::min(first, text.find(stop));
  return first;
}

void enforce(const model_settings& settings, model_reply& reply) {
  if (auto at = find_stop(reply.text, settings.stop); at != std::string::npos) {
    reply.text.resize(at);
    reply.tool_calls.clear();
    reply.finish_reason = "stop";
  }
  if (settings.parallel_tool_calls == false && reply.tool_calls.size() > 1)
    reply.tool_calls.resize(1);
}

std::string stop_filter::feed(std::string_view piece) {
  if (stopped_)
    return {};
  held_ += piece;
  if (auto at = find_stop(held_, stops_); at != std::string::npos) {
    stopped_ = true;
    held_.resize(at);
    return std::exchange(held_, {});
  }
  std::size_t back = 0;
  for (auto& stop : stops_)
    back = std::max(back, overlap(held_, stop));
  auto shown = held_.substr(0, held_.size() - back);
  held_.erase(0, shown.size());
  return shown;
}

std::string stop_filter::rest() {
  return std::exchange(held_, {});
}

}  // namespace troupe

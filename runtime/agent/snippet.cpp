#include "runtime/agent/snippet.hpp"

#include <algorithm>
#include <array>

namespace troupe {

std::string_view to_string(snippet_end end) noexcept {
  static constexpr std::array<std::string_view, 11> names = {
    "ok",       "raised", "soft_timeout", "not_code", "hard_timeout", "output_limit",
    "protocol", "memory", "crashed",      "exited",   "killed"};
  auto i = static_cast<std::size_t>(end);
  return i < names.size() ? names[i] : "killed";
}

sandbox_usage& sandbox_usage::operator+=(const sandbox_usage& x) {
  wall += x.wall;
  cpu += x.cpu;
  max_rss_bytes = std::max(max_rss_bytes, x.max_rss_bytes);
  tool_calls += x.tool_calls;
  return *this;
}

}  // namespace troupe

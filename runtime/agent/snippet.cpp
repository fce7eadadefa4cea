#include "runtime/agent/snippet.hpp"

#include <algorithm>

namespace troupe {

std::string_view to_string(snippet_end end) noexcept {
  switch (end) {
  case snippet_end::ok:
    return "ok";
  case snippet_end::raised:
    return "raised";
  case snippet_end::soft_timeout:
    return "soft_timeout";
  case snippet_end::not_code:
    return "not_code";
  case snippet_end::hard_timeout:
    return "hard_timeout";
  case snippet_end::output_limit:
    return "output_limit";
  case snippet_end::protocol:
    return "protocol";
  case snippet_end::memory:
    return "memory";
  case snippet_end::crashed:
    return "crashed";
  case snippet_end::exited:
    return "exited";
  case snippet_end::killed:
    return "killed";
  }
  return "killed";
}

// In the words of executors/worker/troupe_imports.py; a contract test holds the two together.
std::optional<std::string_view> refused_import(const snippet_error& e) noexcept {
  constexpr std::string_view before = "Import of '", after = "' is not allowed. Allowed imports: ";
  std::string_view text = e.message;
  if (e.type != "ImportError" || !text.starts_with(before))
    return std::nullopt;
  text.remove_prefix(before.size());
  auto end = text.find(after);
  return end == std::string_view::npos ? std::nullopt : std::optional{text.substr(0, end)};
}

sandbox_usage& sandbox_usage::operator+=(const sandbox_usage& x) {
  wall += x.wall;
  cpu += x.cpu;
  max_rss_bytes = std::max(max_rss_bytes, x.max_rss_bytes);
  tool_calls += x.tool_calls;
  return *this;
}

}  // namespace troupe

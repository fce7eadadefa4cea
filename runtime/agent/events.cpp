#include "runtime/agent/events.hpp"

#include <array>

namespace troupe {

std::string_view kind_of(const agent_event& e) noexcept {
  static constexpr std::array<std::string_view, std::variant_size_v<agent_event>> kinds{
    "run_started",    "model_replied",    "model_failed",    "snippet_done",
    "sandbox_failed", "cancel_requested", "deadline_passed", "tool_replied"};
  return kinds[e.index()];
}

std::string_view to_string(run_end end) noexcept {
  switch (end) {
  case run_end::success:
    return "success";
  case run_end::max_steps:
    return "max_steps";
  case run_end::deadline:
    return "deadline";
  case run_end::budget:
    return "budget";
  case run_end::stuck:
    return "stuck";
  case run_end::cancelled:
    return "cancelled";
  case run_end::error:
    return "error";
  }
  return "error";
}

finish& finish::operator+=(const run_usage& x) {
  tokens += x.tokens;
  sandbox += x.sandbox;
  model_attempts += x.model_attempts;
  return *this;
}

run_usage usage_of(const finish& end) {
  return {end.tokens, end.sandbox, end.model_attempts};
}

}  // namespace troupe

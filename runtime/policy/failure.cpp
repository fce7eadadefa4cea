#include "runtime/policy/failure.hpp"

#include <array>
#include <cstddef>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 13> names = {
  "connect", "timeout",     "rate_limited",   "overloaded", "server", "bad_reply", "quota",
  "auth",    "bad_request", "context_length", "cancelled",  "budget", "unknown"};

}  // namespace

std::string_view to_string(failure_class kind) noexcept {
  auto i = static_cast<std::size_t>(kind);
  return i < names.size() ? names[i] : names.back();
}

std::optional<failure_class> failure_class_from(std::string_view name) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<failure_class>(i);
  return std::nullopt;
}

bool is_transient(failure_class kind) noexcept {
  switch (kind) {
  case failure_class::connect:
  case failure_class::timeout:
  case failure_class::rate_limited:
  case failure_class::overloaded:
  case failure_class::server:
  case failure_class::bad_reply:
    return true;
  case failure_class::quota:
  case failure_class::auth:
  case failure_class::bad_request:
  case failure_class::context_length:
  case failure_class::cancelled:
  case failure_class::budget:
  case failure_class::unknown:
    return false;
  }
  return false;
}

}  // namespace troupe

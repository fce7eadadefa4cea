#include "runtime/core/error.hpp"

#include <array>
#include <system_error>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 10> names = {
  "ok",      "invalid_argument", "not_found", "denied",  "over_budget",
  "timeout", "unavailable",      "cancelled", "corrupt", "internal"};

}  // namespace

std::string_view to_string(errc code) noexcept {
  auto i = static_cast<std::size_t>(code);
  return i < names.size() ? names[i] : names.back();
}

errc errc_from(std::string_view name) noexcept {
  for (std::size_t i = 1; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<errc>(i);
  return errc::internal;
}

std::string to_string(const error& e) {
  return std::string{to_string(e.code)} + ": " + e.detail;
}

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

}  // namespace troupe

#pragma once
// How a module says that something failed: few kinds, each one a different reaction.

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// What a caller can do about a failure. Only timeout and unavailable may be retried.
enum class errc : std::uint8_t {
  invalid_argument = 1,
  not_found,
  denied,
  over_budget,
  timeout,
  unavailable,
  cancelled,
  corrupt,
  internal
};

/// The kind's name as it stands in journals and messages, e.g. "over_budget".
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// The kind of that name, or internal when there is none.
[[nodiscard]] errc errc_from(std::string_view name) noexcept;

/// One failure: its kind, and one line that names the thing, what is wrong and the mend.
struct error {
  errc code = errc::internal;
  std::string detail;

  bool operator==(const error&) const = default;
};

/// "kind: detail", for logs. Users are shown `detail` alone.
[[nodiscard]] std::string to_string(const error& e);

template <class T>
using result = tl::expected<T, error>;

[[nodiscard]] inline tl::unexpected<error> fail(errc code, std::string detail) {
  return tl::unexpected<error>(error{code, std::move(detail)});
}

[[nodiscard]] inline tl::unexpected<error> fail(error e) {
  return tl::unexpected<error>(std::move(e));
}

/// The text of an errno value, e.g. "No such file or directory". Thread-safe.
[[nodiscard]] std::string errno_text(int number);

}  // namespace troupe

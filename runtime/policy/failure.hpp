#pragma once
// The ways a model call fails, by what should follow.

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

enum class failure_class : std::uint8_t {
  connect,         ///< no connection: refused, DNS, TLS: retry
  timeout,         ///< no answer in time: retry while the deadline lasts
  rate_limited,    ///< 429: retry, the server's wait first
  overloaded,      ///< 503, 529: retry
  server,          ///< other 5xx, 408, 409: retry
  bad_reply,       ///< 200 that is not a reply (not JSON, wrong shape, cut short): retry
  quota,           ///< the account is out of money: final
  auth,            ///< 401, 403: final
  bad_request,     ///< 400, 404, 422: final
  context_length,  ///< the request is longer than the model can read: final as it is
  cancelled,       ///< by us: final
  budget,          ///< a budget of the user's own is spent: final
  unknown          ///< final
};

[[nodiscard]] std::string_view to_string(failure_class kind) noexcept;

/// The kind of that name, e.g. "rate_limited"; nothing when there is none.
[[nodiscard]] std::optional<failure_class> failure_class_from(std::string_view name) noexcept;

/// True for the kinds that another try may cure.
[[nodiscard]] bool is_transient(failure_class kind) noexcept;

}  // namespace troupe

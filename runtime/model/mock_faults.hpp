#pragma once
// What goes wrong on purpose in `troupe mock`: which request it meets, and what it does to the
// answer. A plan is a function of the seed, so that a run can be repeated.

#include "runtime/core/random.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/mock_answer.hpp"
#include "runtime/policy/failure.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe {

enum class fault_kind : std::uint8_t {
  rate_limited,    ///< 429, with the wait that the rule names
  overloaded,      ///< 503; Anthropic: 529
  server,          ///< 500
  gateway,         ///< 502 with a page of HTML
  timeout,         ///< no answer for `pause`, then the connection closes
  quota,           ///< out of money: final
  auth,            ///< 401
  bad_request,     ///< 400
  context_length,  ///< 400, as for a prompt that is longer than the model can read
  reset,           ///< a TCP reset instead of an answer
  drop,            ///< the connection closes without an answer
  cut,             ///< the connection closes within the body
  truncated,       ///< a whole HTTP message whose JSON, or whose events, stop in the middle
  wrong_type,      ///< 200 with a page of HTML
  stall,           ///< nothing comes for `pause` in the middle of the body
  slow,            ///< every piece of the body comes `pause` late
  error_event      ///< a stream ends with an error event in its middle; plain: as `server`
};

[[nodiscard]] std::string_view to_string(fault_kind kind) noexcept;
[[nodiscard]] std::optional<fault_kind> fault_kind_from(std::string_view name) noexcept;
[[nodiscard]] std::vector<std::string_view> fault_kind_names();

/// The fault by which a server shows a failure of that class.
[[nodiscard]] fault_kind fault_of(failure_class kind) noexcept;

/// One rule. With `every` it holds for `burst` requests of each `every`; with `every_span`, for the
/// first `burst_span` of each such span of time: storms. Within these it strikes at its rate.
struct fault_rule {
  fault_kind kind = fault_kind::server;
  double rate = 1;
  std::uint64_t every = 0;
  std::uint64_t burst = 1;
  millis every_span{0};
  millis burst_span{0};
  std::optional<double> at{};  ///< share of the body that comes before it; nothing: drawn
  millis pause{1000};          ///< of timeout, stall and slow
  std::optional<millis> retry_after{};
};

/// A fault that strikes one request.
struct mock_fault {
  fault_kind kind = fault_kind::server;
  double at = 0.5;
  millis pause{0};
  std::optional<millis> retry_after{};
};

/// The first rule that strikes request `number` (from 1), `elapsed` after the server's start.
/// Draws the same amount from `random` whether or not anything strikes.
[[nodiscard]] std::optional<mock_fault>
plan_fault(const std::vector<fault_rule>& rules, std::uint64_t number, millis elapsed, rng& random);

/// What the fault makes of an answer; only for the kinds from reset on. `error_event` is the event
/// that ends a stream for the fault of that name.
void apply_fault(const mock_fault& fault, std::string_view error_event, mock_answer& answer);

}  // namespace troupe

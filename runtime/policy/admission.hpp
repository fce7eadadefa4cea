#pragma once
// One endpoint's door: how fast, how many at once, whether it is alive. Decides when a request may
// go; learns from how each one ends. A value; `now` is an argument.

#include "runtime/core/token_usage.hpp"
#include "runtime/policy/circuit_breaker.hpp"
#include "runtime/policy/concurrency.hpp"
#include "runtime/policy/failure.hpp"
#include "runtime/policy/rate_limit.hpp"

#include <optional>

namespace troupe {

struct admission_settings {
  rate_settings rates{};
  concurrency_settings places{};
  breaker_settings breaker{};
};

/// What is known of a call before it is made.
struct call_size {
  std::size_t bytes = 0;         ///< of the request's messages
  std::uint32_t max_output = 0;  ///< tokens; 0: no limit is set
};

/// How a request ended.
struct try_end {
  std::optional<failure_class> failed{};  ///< empty: with a reply
  token_usage used{};
  std::optional<millis> wait{};  ///< that the server asks for
};

/// Guesses a call's tokens from its bytes by what earlier calls came to.
class token_estimate {
public:
  [[nodiscard]] double input(std::size_t bytes) const {
    return static_cast<double>(bytes) * per_byte_ + 1;
  }
  [[nodiscard]] double output(std::uint32_t max_output) const;

  /// As much as a call may come to: by its own limit on the reply if it has one, else twice the
  /// longest reply seen.
  [[nodiscard]] token_usage most(const call_size& call) const;
  void learn(std::size_t bytes, const token_usage& used);

private:
  // English text has about four bytes to a token; code and JSON have three.
  double per_byte_ = 0.3;
  double output_ = 300;
  std::uint64_t longest_output_ = 0;
};

/// Cost  O(1) for each call of each function.
class admission {
public:
  /// A request under way.
  struct pass {
    rate_limit::pass rates{};
    std::size_t bytes = 0;
  };

  explicit admission(admission_settings s = {});

  /// When a call may start: `now`; a later moment at which to ask again; never: when one under way
  /// has ended.
  [[nodiscard]] time_point ready_at(const call_size& call, time_point now);

  [[nodiscard]] pass start(const call_size& call, time_point now);

  void end(const pass& p, const try_end& how, const rate_report& stated, time_point now);

  /// The call was given up by us.
  void abandon(const pass& p, time_point now);

  void tell(rate_settings rates) { rates_.tell(rates); }
  void set_most(std::size_t most) { places_.set_most(most); }

  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t limit() const { return places_.limit(); }
  [[nodiscard]] const circuit_breaker& breaker() const { return breaker_; }
  [[nodiscard]] const token_estimate& estimate() const { return estimate_; }

  /// Share of the places that are taken.
  [[nodiscard]] double load() const {
    return static_cast<double>(in_flight_) / static_cast<double>(places_.limit());
  }

private:
  void end_answered(const pass& p, const token_usage& used, const rate_report& stated,
                    time_point now);
  void end_failed(const pass& p, failure_class kind, std::optional<millis> wait,
                  const rate_report& stated, time_point now);
  void end_refused(const pass& p, std::optional<millis> wait, const rate_report& stated,
                   time_point now);
  [[nodiscard]] rate_limit::amounts need(const call_size& call) const;

  rate_limit rates_;
  concurrency places_;
  circuit_breaker breaker_;
  token_estimate estimate_;
  std::size_t in_flight_ = 0;
};

}  // namespace troupe

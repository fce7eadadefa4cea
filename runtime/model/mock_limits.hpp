#pragma once
// What a mocked provider allows a minute, and how it says so: the limits of `troupe mock`.

#include "runtime/core/random.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/model/codec.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A minute's allowance of each kind; 0 is no limit.
struct mock_limit_settings {
  std::uint64_t requests = 0;
  std::uint64_t tokens = 0;  ///< input and output together
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t concurrent = 0;  ///< requests in flight
  millis burst{60'000};          ///< so much of the allowance may be used at once; above 0
  double reject = 1;             ///< share of the requests beyond a limit that are turned away
  bool headers = true;           ///< tell the client

  [[nodiscard]] bool any() const noexcept {
    return requests + tokens + input_tokens + output_tokens + concurrent > 0;
  }
};

/// Why a request was turned away.
struct mock_denial {
  std::string_view of;           ///< "requests", "tokens", "input-tokens", "output-tokens"
  std::uint64_t limit = 0;       ///< a minute
  std::uint64_t left = 0;        ///< of the allowance
  std::uint64_t asked = 0;       ///< by the request
  std::optional<millis> wait{};  ///< until it would fit; nothing: it never will
};

/// Token buckets, full at the start, that fill up at a minute's allowance a minute. A request pays
/// when it comes, for its reply too: the server knows its script. What is turned away pays nothing.
class mock_limits {
public:
  mock_limits(const mock_limit_settings& settings, time_point now);

  /// Draws from `random` only when the request is beyond a limit and `reject` is below 1.
  [[nodiscard]] std::optional<mock_denial> admit(const token_usage& cost, std::uint64_t in_flight,
                                                 time_point now, rng& random);

  /// The limit headers of every answer, in the provider's own form.
  /// Units   `wall` is in microseconds since the Unix epoch.
  /// Source  platform.openai.com/docs/guides/rate-limits, docs.claude.com/en/api/rate-limits
  [[nodiscard]] header_list headers(wire_format wire, time_point now, std::int64_t wall) const;

private:
  struct bucket {
    std::string_view name;
    std::uint64_t limit = 0;
    double capacity = 0;
    double level = 0;

    [[nodiscard]] bool used() const noexcept { return limit > 0; }
    [[nodiscard]] millis until(double wanted) const;
  };

  void refill(time_point now);
  [[nodiscard]] std::optional<mock_denial> lacking(const token_usage& cost,
                                                   std::uint64_t in_flight) const;

  mock_limit_settings settings_;
  std::array<bucket, 4> buckets_;  ///< requests, tokens, input tokens, output tokens
  time_point filled_;
};

/// "retry-after", in whole seconds, and OpenAI's "retry-after-ms", both rounded up.
void add_retry_after(header_list& out, wire_format wire, millis wait);

/// A span as OpenAI writes it: "12ms", "1.5s", "6m0s", "1h0m30s".
[[nodiscard]] std::string openai_span(millis span);

}  // namespace troupe

#pragma once
// A provider's rate limiter, simulated: requests and tokens a minute, counted by a token bucket or
// in fixed windows, stated in headers or not.

#include "runtime/core/random.hpp"
#include "runtime/policy/rate_report.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace troupe::test {

struct server_limits {
  enum class counting : std::uint8_t { bucket, window };
  counting how = counting::bucket;
  double requests = 600;                ///< a minute
  double tokens = 1e9;                  ///< a minute
  bool states = true;                   ///< with each answer
  bool asks_to_wait = true;             ///< Retry-After with a refusal
  double refused_share = 1;             ///< of what exceeds the limits
  double chance = 0;                    ///< share that is refused whatever the rate
  std::optional<millis> chance_wait{};  ///< what is asked for then
  std::uint64_t seed = 11;
};

class limited_server {
public:
  struct verdict {
    bool refused = false;
    std::optional<millis> wait;
    rate_report stated;
  };

  limited_server(server_limits limits, time_point now)
    : limits_{limits}, random_{limits.seed}, now_{now}, window_end_{now + std::chrono::seconds{60}},
      left_{limits.requests, limits.tokens} {}

  verdict ask(double tokens, time_point now) {
    advance(now);
    std::array<double, 2> need{1, tokens};
    auto fits = left_[0] >= need[0] && left_[1] >= need[1];
    if (!fits && random_.uniform() < limits_.refused_share) {
      ++refused;
      return {true, limits_.asks_to_wait ? std::optional{wait_for(need)} : std::nullopt, stated()};
    }
    if (limits_.chance > 0 && random_.uniform() < limits_.chance) {
      ++refused_by_chance;
      return {true, limits_.chance_wait, stated()};
    }
    ++admitted;
    admitted_tokens += tokens;
    for (std::size_t i = 0; i < 2; ++i)
      left_[i] = std::max(0.0, left_[i] - need[i]);
    return {false, std::nullopt, stated()};
  }

  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t refused_by_chance = 0;
  double admitted_tokens = 0;

private:
  [[nodiscard]] double most(std::size_t i) const {
    return i == 0 ? limits_.requests : limits_.tokens;
  }

  void advance(time_point now) {
    auto passed = std::chrono::duration<double>(now - now_).count();
    now_ = now;
    if (limits_.how == server_limits::counting::bucket)
      for (std::size_t i = 0; i < 2; ++i)
        left_[i] = std::min(most(i), left_[i] + most(i) / 60 * passed);
    for (; now >= window_end_; window_end_ += std::chrono::seconds{60})
      if (limits_.how == server_limits::counting::window)
        left_ = {most(0), most(1)};
  }

  [[nodiscard]] millis span(std::size_t i, double amount) const {
    return millis{static_cast<millis::rep>(amount / most(i) * 60'000) + 1};
  }

  [[nodiscard]] millis until_window() const {
    return std::chrono::duration_cast<millis>(window_end_ - now_) + millis{1};
  }

  [[nodiscard]] millis wait_for(const std::array<double, 2>& need) const {
    if (limits_.how == server_limits::counting::window)
      return until_window();
    millis longest{1};
    for (std::size_t i = 0; i < 2; ++i)
      longest = std::max(longest, span(i, std::max(0.0, need[i] - left_[i])));
    return longest;
  }

  [[nodiscard]] rate_report stated() const {
    if (!limits_.states)
      return {};
    rate_report out;
    for (std::size_t i = 0; i < 2; ++i)
      out.push_back({static_cast<rate_quantity>(i), most(i), std::floor(left_[i]),
                     limits_.how == server_limits::counting::window ? until_window()
                                                                    : span(i, most(i) - left_[i]),
                     false});
    return out;
  }

  server_limits limits_;
  rng random_;
  time_point now_;
  time_point window_end_;
  std::array<double, 2> left_;
};

}  // namespace troupe::test

#pragma once
// How fast one endpoint may be asked: what the user told, what the server states with its answers,
// and what its refusals teach. Values; `now` is an argument, no clock is read.

#include "runtime/core/time.hpp"
#include "runtime/policy/rate_report.hpp"
#include "runtime/policy/refusal_noise.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace troupe {

/// Units  per minute; 0: no limit is known.
struct rate_settings {
  double requests = 0;
  double tokens = 0;  ///< input and output

  bool operator==(const rate_settings&) const = default;
};

/// One quantity's allowance: a leaky bucket whose rate is the least of what was told, learned and
/// stated. What a server states (limit, remaining, reset) is spread evenly until its reset: that
/// uses up a fixed window exactly, and keeps a token bucket about half full. Which of the two it is
/// shows in the reset, which for a bucket is the time to refill. A limit of less than 1 is none,
/// and what was stated holds nobody for longer than five minutes after the last word. Units
/// seconds, and the quantity's own.
class rate_meter {
public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  // NOLINTNEXTLINE(bugprone-narrowing-conversions): infinity is a double already
  void tell(double per_second) { told_ = per_second > 0 ? per_second : unlimited; }
  void learn(double per_second) { learned_ = per_second; }
  [[nodiscard]] double learned() const { return learned_; }

  /// Less than a tenth is left of a limit; of one that is not stated (negative), nothing.
  [[nodiscard]] static bool used_up(double remaining, double limit) {
    return remaining <= std::max(limit, 0.0) / 10;
  }

  /// The server states this quantity, and it is not used up.
  [[nodiscard]] bool has_room() const { return !stated() || !used_up(remaining_, limit_); }
  [[nodiscard]] bool stated() const { return limit_ >= 0; }

  /// The learned rate is what callers go at now: hardly any of it lies unused.
  [[nodiscard]] bool binds() const;

  /// When so much may go: `now`, or a later moment at which to ask again.
  [[nodiscard]] time_point ready_at(double amount, time_point now);

  void take(double amount, time_point now);

  /// Less or more was used than taken.
  void correct(double difference);

  /// No catching up of what was not used before.
  void forget_credit();

  [[nodiscard]] double sent() const { return sent_; }

  /// What the server said with its answer to the request that was sent at `sent_at`, when `mark`
  /// had been taken in all. Words about earlier requests than the newest are ignored. `come_back`
  /// is a refusal's own wait: if nothing is left, and all of it will only be there later than that,
  /// then some of it will be there before.
  void state(const rate_word& word, double mark, time_point sent_at, time_point now,
             std::optional<millis> come_back = {});

private:
  static constexpr int enough_evidence = 3;

  void advance(time_point now);
  void forget_stale(time_point now);
  void refill(time_point now, double passed);
  [[nodiscard]] double rate(time_point now) const;
  [[nodiscard]] bool refills() const { return bucket_evidence_ >= enough_evidence; }
  void weigh_kind(double remaining, double until_reset);

  double told_ = unlimited;
  double learned_ = unlimited;
  double debt_ = 0;  ///< taken ahead of the rate; negative: credit
  time_point as_of_{};
  double sent_ = 0;

  double limit_ = -1;  ///< these are the server's; negative: it states none
  double remaining_ = 0;
  time_point reset_at_{};
  double period_ = 60;
  double newest_mark_ = -1;
  time_point stated_at_{};
  int bucket_evidence_ = 0;
};

/// All quantities of one endpoint. After a refusal everybody waits: as long as the server asks,
/// else a cooldown that doubles until something is answered again, with one request to try it. A
/// wait that does not help again and again gives way to that cooldown where the server states a
/// later reset, up to which it goes: a refusal may have nothing to do with the figures beside it.
/// Where the server states no limits, the rate that it admitted from one refusal to the next is
/// kept to from then on, and grows slowly while it is used. Refusals that come too thick to tell a
/// rate lower it as well, and when they are over it comes back within a minute or two: a storm that
/// has other causes is forgotten. Refusals by chance (refusal_noise) hold back nobody, once they
/// are known as such. Cost  O(1) per call.
class rate_limit {
public:
  static constexpr std::size_t quantities = 4;
  using amounts = std::array<double, quantities>;  ///< in the order of rate_quantity

  /// One request's reservation.
  struct pass {
    time_point sent_at{};
    amounts reserved{};
    amounts marks{};
    std::uint64_t number = 0;  ///< in the order of sending
  };

  explicit rate_limit(rate_settings told = {});

  /// Other limits from now on.
  void tell(rate_settings told);

  /// When a request of that size may go: `now`, or a later moment at which to ask again.
  [[nodiscard]] time_point ready_at(const amounts& need, time_point now);

  [[nodiscard]] pass take(const amounts& need, time_point now);

  /// An answer has come, and so much was used in truth.
  void answered(const pass& p, const amounts& used, const rate_report& stated, time_point now);

  /// No answer: what was taken may have been counted by the server, so it stays taken.
  void lost(const pass& p, const rate_report& stated, time_point now);

  /// Refused for want of allowance, or by chance: says which. `wait` is the server's own.
  refusal_meaning refused(const pass& p, const rate_report& stated, std::optional<millis> wait,
                          time_point now);

  /// Nobody goes before that.
  void hold(time_point until) { held_until_ = std::max(held_until_, until); }

  [[nodiscard]] time_point held_until() const { return held_until_; }

private:
  void read(const pass& p, const rate_report& stated, time_point now,
            std::optional<millis> come_back = {});
  refusal_meaning judge(const pass& p, time_point now);
  void begin_episode(std::optional<millis> wait, millis reset, time_point now);
  void end_episode();
  void learn_admitted(std::size_t i, bool known);
  void forget_episodes(time_point now);
  void grow(time_point now);
  [[nodiscard]] bool explained() const;

  std::array<rate_meter, quantities> meters_;
  time_point held_until_{};
  time_point refused_at_ = time_point::min();  ///< the newest episode's begin
  std::uint32_t refusals_in_row_ = 0;          ///< episodes without an answer between
  std::uint64_t taken_ = 0;
  bool to_probe_ = false;  ///< the next one goes alone

  // What is learned from refusals, of requests and of tokens.
  bool to_learn_ = false;  ///< an episode's figures are being collected
  double episode_span_ = 0;
  time_point since_{};
  bool began_ = false;
  amounts admitted_{};
  amounts base_{};       ///< rates at the end of the last episode
  amounts proven_{};     ///< the last of them that was more than a guess
  amounts before_{};     ///< what callers went at when refusals became suspect
  bool rising_ = false;  ///< they taught too little; how much is to be found
  refusal_noise noise_;
  double used_minutes_ = 0;  ///< since then, while they held callers back
  time_point grown_at_{};
};

}  // namespace troupe

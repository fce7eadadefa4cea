#include "runtime/policy/rate_limit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {
namespace {

constexpr double told_share = 0.985;  // a window that begins elsewhere than ours must hold it too
constexpr double learned_share = 0.98;
constexpr double worked_share = 0.97;
constexpr double burst_seconds = 0.5;   // what a late timer may catch up
constexpr double enough_to_learn = 20;  // requests
constexpr double bucket_period = 60;
constexpr double deepest_guess = 64;           // no part of the proven rate that is smaller
constexpr double guess_holds = 0.5;            // minutes without a refusal
constexpr double doublings_a_min = 8.0;        // from then on, up to the proven rate
constexpr double tested_growth = 1.018;        // below it a rate is one that went well
constexpr double rise = 8;                     // seconds to twice the rate, after a false alarm
constexpr std::size_t learned_quantities = 2;  // requests and tokens; the others are parts of these
constexpr millis first_cooldown{1'000};
constexpr millis longest_cooldown{30'000};
constexpr millis longest_reset{300'000};    // a day's limit is not waited for: its refusal says so
constexpr millis probe_pause{250};          // a refusal takes less
constexpr millis reset_slack{1'000};        // a reset and a wait of the same moment may be rounded
constexpr std::uint32_t trusted_waits = 3;  // in a row that did not help

double seconds(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

/// Whole milliseconds, rounded up: a timer that fires early would be set again and again.
time_point later(time_point now, double s) {
  constexpr double most = 86'400;
  auto ms = std::ceil(std::clamp(s, 0.0, most) * 1e3);
  return now + millis{std::max<millis::rep>(1, static_cast<millis::rep>(ms))};
}

/// Until all of what is used up will be there again; zero: the server does not say.
millis reset_of_used_up(const rate_report& stated) {
  millis longest{0};
  for (const auto& word : stated)
    if (word.remaining >= 0 && rate_meter::used_up(word.remaining, word.limit))
      longest = std::max(longest, word.reset);
  return longest;
}

}  // namespace

// --- one quantity
// ------------------------------------------------------------------------------------

time_point rate_meter::ready_at(double amount, time_point now) {
  advance(now);
  auto when = now;
  if (stated() && remaining_ < std::min(amount, limit_))
    when = refills() ? later(now, (std::min(amount, limit_) - remaining_) * bucket_period
                                    / std::max(limit_, 1.0))
                     : std::max(reset_at_, now + millis{1});
  if (debt_ > 0) {
    auto r = rate(now);
    auto paid = r > 0 ? later(now, debt_ / r) : never;
    if (stated() && reset_at_ > now)  // then the rate is another one
      paid = std::min(paid, reset_at_);
    when = std::max(when, paid == never ? later(now, 1) : paid);
  }
  return stated() ? std::min(when, std::max(now, stated_at_ + longest_reset)) : when;
}

bool rate_meter::binds() const {
  return learned_ != unlimited && debt_ > -learned_ * burst_seconds / 4;
}

void rate_meter::take(double amount, time_point now) {
  advance(now);
  sent_ += amount;
  remaining_ -= amount;
  if (rate(now) != unlimited)
    debt_ += amount;
}

void rate_meter::correct(double difference) {
  remaining_ -= difference;
  if (debt_ != 0 || told_ != unlimited || learned_ != unlimited || stated())
    debt_ += difference;
}

void rate_meter::forget_credit() {
  debt_ = std::max(debt_, 0.0);
}

void rate_meter::advance(time_point now) {
  auto passed = std::max(0.0, seconds(now - as_of_));
  as_of_ = std::max(as_of_, now);
  forget_stale(now);
  if (stated())
    refill(now, passed);
  auto r = rate(now);
  debt_ = r == unlimited ? 0 : std::max(debt_ - r * passed, std::min(debt_, -r * burst_seconds));
}

/// Its figures are of another time, or are not meant.
void rate_meter::forget_stale(time_point now) {
  if (!stated() || now < stated_at_ + longest_reset)
    return;
  limit_ = -1;
  remaining_ = 0;
}

void rate_meter::refill(time_point now, double passed) {
  if (refills()) {
    remaining_ = std::min(limit_, remaining_ + limit_ / bucket_period * passed);
    reset_at_ = now
                + std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(
                  (limit_ - remaining_) * bucket_period / std::max(limit_, 1.0)));
  } else if (now >= reset_at_) {
    remaining_ = limit_;
    reset_at_ = later(now, period_);
  }
}

double rate_meter::rate(time_point now) const {
  auto r = std::min(told_, learned_);
  if (!stated())
    return r;
  auto until = seconds(reset_at_ - now);
  if (until <= 0)
    return r;
  // An empty bucket fills up at half of what comes in too, and nobody waits for a minute.
  auto least = refills() ? limit_ / bucket_period / 2 : 0.0;
  return std::min(r, std::max(least, remaining_ / until));
}

void rate_meter::state(const rate_word& word, double mark, time_point sent_at, time_point now,
                       std::optional<millis> come_back) {
  auto limit = word.limit >= 1 ? word.limit : limit_;
  if (mark < newest_mark_ || word.remaining < 0 || limit < 0)
    return;
  advance(now);
  newest_mark_ = mark;
  stated_at_ = now;
  limit_ = std::max(limit, word.remaining);
  auto reset = std::min(word.reset >= millis{0} ? word.reset : millis{60'000}, longest_reset);
  auto reset_at = (word.from_answer ? now : sent_at) + reset;
  if (come_back && used_up(word.remaining, limit_) && reset > *come_back + reset_slack)
    bucket_evidence_ = std::max(bucket_evidence_, enough_evidence);
  else
    weigh_kind(word.remaining, seconds(reset_at - sent_at));
  period_ = std::max(period_, seconds(reset));
  auto sent_after = sent_ - mark;
  if (refills()) {
    auto refilled = word.remaining + limit_ / bucket_period * seconds(now - sent_at);
    remaining_ = std::min(limit_, refilled) - sent_after;
  } else if (reset_at > now) {
    remaining_ = word.remaining - sent_after;
    reset_at_ = reset_at;
  }  // else it speaks of a window that is over
}

void rate_meter::weigh_kind(double remaining, double until_reset) {
  auto refill_time = (limit_ - remaining) * bucket_period / std::max(limit_, 1.0);
  auto fits = std::abs(refill_time - until_reset) <= 1.0;
  bucket_evidence_ = std::clamp(bucket_evidence_ + (fits ? 1 : -4), -4, 8);
}

// --- all of them
// -------------------------------------------------------------------------------------

rate_limit::rate_limit(rate_settings told) {
  tell(told);
  base_.fill(rate_meter::unlimited);
  proven_.fill(rate_meter::unlimited);
}

void rate_limit::tell(rate_settings told) {
  meters_[0].tell(told.requests / 60 * told_share);
  meters_[1].tell(told.tokens / 60 * told_share);
}

time_point rate_limit::ready_at(const amounts& need, time_point now) {
  if (now < held_until_)
    return held_until_;
  if (to_learn_)
    end_episode();
  auto when = now;
  for (std::size_t i = 0; i < quantities; ++i)
    when = std::max(when, meters_[i].ready_at(need[i], now));
  return when;
}

rate_limit::pass rate_limit::take(const amounts& need, time_point now) {
  if (!std::exchange(began_, true))
    since_ = now;
  grow(now);
  if (noise_.sent()) {  // nothing was learned while half the rate was tried
    since_ = now;
    admitted_.fill(0);
  }
  pass p{now, need, {}, ++taken_};
  for (std::size_t i = 0; i < quantities; ++i) {
    meters_[i].take(need[i], now);
    admitted_[i] += need[i];
    p.marks[i] = meters_[i].sent();
  }
  if (refusals_in_row_ > 1 && std::exchange(to_probe_, false))
    hold(after(now, probe_pause));
  return p;
}

void rate_limit::answered(const pass& p, const amounts& used, const rate_report& stated,
                          time_point now) {
  for (std::size_t i = 0; i < quantities; ++i) {
    meters_[i].correct(used[i] - p.reserved[i]);
    admitted_[i] += used[i] - p.reserved[i];
  }
  if (p.sent_at >= refused_at_)
    refusals_in_row_ = 0;
  read(p, stated, now);
}

void rate_limit::lost(const pass& p, const rate_report& stated, time_point now) {
  read(p, stated, now);
}

refusal_meaning rate_limit::refused(const pass& p, const rate_report& stated,
                                    std::optional<millis> wait, time_point now) {
  for (std::size_t i = 0; i < quantities; ++i) {
    meters_[i].correct(-p.reserved[i]);
    admitted_[i] -= p.reserved[i];
  }
  read(p, stated, now, wait);
  if (p.sent_at < refused_at_) {  // of the same episode
    noise_.refused_with_it();
    if (wait)
      held_until_ = std::max(held_until_, after(now, *wait));
    return refusal_meaning::limit;
  }
  auto what = explained() ? refusal_meaning::limit : judge(p, now);
  if (what == refusal_meaning::limit || what == refusal_meaning::unclear)
    begin_episode(wait, reset_of_used_up(stated), now);
  return what;
}

refusal_meaning rate_limit::judge(const pass& p, time_point now) {
  auto rate = meters_[0].learned();
  auto went_well = rate != rate_meter::unlimited && rate < base_[0] * tested_growth;
  auto what = noise_.refused(p.number, went_well);
  if (what == refusal_meaning::found)
    forget_episodes(now);
  else if (!noise_.suspects())
    for (std::size_t i = 0; i < learned_quantities; ++i)
      before_[i] = meters_[i].learned();
  return what;
}

/// They were about nothing: callers go on as before.
void rate_limit::forget_episodes(time_point now) {
  for (std::size_t i = 0; i < learned_quantities; ++i) {
    base_[i] = proven_[i] = before_[i];
    meters_[i].learn(before_[i]);
  }
  used_minutes_ = 0;
  rising_ = true;
  since_ = now;
  admitted_.fill(0);
}

void rate_limit::read(const pass& p, const rate_report& stated, time_point now,
                      std::optional<millis> come_back) {
  for (const auto& word : stated) {
    auto i = static_cast<std::size_t>(word.of);
    if (i < quantities)
      meters_[i].state(word, p.marks[i], p.sent_at, now, come_back);
  }
}

/// The server's own figures say why it refused.
bool rate_limit::explained() const {
  auto stated = std::any_of(meters_.begin(), meters_.end(), [](auto& m) { return m.stated(); });
  auto room = std::all_of(meters_.begin(), meters_.end(), [](auto& m) { return m.has_room(); });
  return stated && !room;
}

void rate_limit::begin_episode(std::optional<millis> wait, millis reset, time_point now) {
  auto doublings = std::min<std::uint32_t>(refusals_in_row_, 10);
  auto pause = std::min(first_cooldown * (1 << doublings), longest_cooldown);
  if (wait)
    pause = refusals_in_row_ < trusted_waits ? *wait : std::max(*wait, std::min(pause, reset));
  ++refusals_in_row_;
  held_until_ = std::max(held_until_, after(now, pause));
  refused_at_ = now;
  rising_ = false;
  to_probe_ = true;
  to_learn_ = !explained();
  episode_span_ = seconds(now - since_);
  for (auto& m : meters_)
    m.forget_credit();
}

/// After the wait all refusals are back, so what is left of `admitted_` was admitted indeed.
void rate_limit::end_episode() {
  to_learn_ = false;
  auto requests = admitted_[0];
  if (requests < 0.5)
    return;  // the same want as before
  // Few requests tell little: the next refusals will say it better. And a rate that went well for
  // long is not far off, whatever the figures say: they mislead when a window's first part was
  // idle.
  auto known = requests >= enough_to_learn && episode_span_ >= 1;
  for (std::size_t i = 0; i < learned_quantities; ++i)
    learn_admitted(i, known);
  used_minutes_ = 0;
  if (!known)
    return;
  since_ = refused_at_;
  admitted_.fill(0);
}

void rate_limit::learn_admitted(std::size_t i, bool known) {
  auto worked = used_minutes_ >= 0.5;
  auto before = meters_[i].learned();
  base_[i] = std::max(admitted_[i], 0.0) / std::max(episode_span_, 0.01) * learned_share;
  if (!known && before != rate_meter::unlimited) {
    base_[i] = std::clamp(base_[i], before / 2, before);
    if (proven_[i] != rate_meter::unlimited)
      base_[i] = std::max(base_[i], proven_[i] / deepest_guess);
  } else if (worked && before != rate_meter::unlimited) {
    base_[i] = std::max(base_[i], before * worked_share);
  }
  if (noise_.suspects())  // and then the rate is not what is wrong
    base_[i] = std::max(base_[i], before);
  if (base_[i] <= 0)  // nothing of it was ever used
    base_[i] = rate_meter::unlimited;
  if (known || worked)
    proven_[i] = base_[i];
  meters_[i].learn(noise_.on_trial() ? base_[i] / 2 : base_[i]);
}

/// About 3 % in the first minute, 15 % after two and a half: most of the time goes by just below
/// what the server allows, and a limit that was raised is found all the same.
void rate_limit::grow(time_point now) {
  auto passed = seconds(now - std::exchange(grown_at_, now));
  if (base_[0] == rate_meter::unlimited || noise_.on_trial())
    return;
  passed = std::min(passed, std::max(1.0, 1.5 / base_[0]));  // longer: nobody called
  if (meters_[0].binds() || meters_[1].binds())
    used_minutes_ += passed / 60;
  if (rising_)
    for (std::size_t i = 0; i < learned_quantities; ++i)
      base_[i] *= std::exp2(passed / rise);
  auto factor = 1 + 0.015 * used_minutes_ + 0.04 * used_minutes_ * used_minutes_;
  auto back = std::exp2(std::max(0.0, used_minutes_ - guess_holds) * doublings_a_min);
  for (std::size_t i = 0; i < learned_quantities; ++i) {
    auto guessed_low = proven_[i] != rate_meter::unlimited && base_[i] < proven_[i];
    auto recovered = guessed_low ? std::min(base_[i] * back, proven_[i]) : 0.0;
    meters_[i].learn(std::max(base_[i] * factor, recovered));
  }
}

}  // namespace troupe

#include "runtime/policy/refusal_noise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {
namespace {

constexpr double most_noise = 0.1;  // a server that refuses more by chance is taken for limited
constexpr double least_noise = 0.002;
constexpr double rarest = 0.004;  // a trial would take longer than it is worth
constexpr std::uint32_t enough_unexpected = 2;
constexpr std::uint32_t enough_apart = 2;     // refusals in a trial
constexpr std::uint64_t apart = 3;            // requests from one refusal to the next
constexpr std::uint32_t too_many_in_row = 4;  // in a trial
constexpr std::uint64_t shortest_trial = 200;
constexpr double trial_spans = 4;       // mean distances of refusals
constexpr double memory = 1'000;        // requests over which the share is followed
constexpr double excess = 0.15;         // what is looked for beyond the share
constexpr double enough_evidence = 12;  // a false alarm in 160 000 requests, at most

}  // namespace

bool refusal_noise::sent() {
  auto ends = ++sent_ > trial_end_ && on_trial_;
  if (ends)
    end_trial(false);
  if (share_ > 0)
    weigh_sent();
  return ends;
}

refusal_meaning refusal_noise::refused(std::uint64_t number, bool unexpected) {
  ++refusals_;
  if (on_trial_)
    return judge_trial(number);
  if (share_ > 0)
    weigh_refused();
  if (share_ > 0 && score_ < enough_evidence)
    return refusal_meaning::chance;
  score_ = 0;
  return suspect(unexpected);
}

/// Refusals come sooner than answers, so a request counts as admitted from its sending until it is
/// known better.
void refusal_noise::weigh_sent() {
  score_ = std::max(0.0, score_ + std::log((1 - share_ - excess) / (1 - share_)));
  share_ -= share_ / memory;
  if (share_ < least_noise)
    share_ = 0;
}

void refusal_noise::weigh_refused() {
  auto more = share_ + excess;
  score_ += std::log(more / share_) - std::log((1 - more) / (1 - share_));
  share_ = std::min(most_share_, share_ + 1 / memory);
}

refusal_meaning refusal_noise::suspect(bool unexpected) {
  auto share = static_cast<double>(refusals_) / static_cast<double>(sent_ - since_);
  if (!unexpected || share > most_noise || share < rarest) {
    begin_anew();
    return refusal_meaning::limit;
  }
  if (++unexpected_ < enough_unexpected || sent_ <= no_trial_)
    return refusal_meaning::limit;
  begin_trial();
  return refusal_meaning::unclear;
}

/// What is refused first may belong to what was sent too fast before.
refusal_meaning refusal_noise::judge_trial(std::uint64_t number) {
  auto distance = number - std::min(number, std::exchange(last_refused_, number));
  in_row_ = distance > 1 ? 1 : in_row_ + 1;
  if (in_row_ >= too_many_in_row) {
    end_trial(false);
    return refusal_meaning::limit;
  }
  ++in_trial_;
  if (distance >= apart && ++apart_ < enough_apart)
    trial_end_ = sent_ + trial_length();
  if (apart_ < enough_apart || in_trial_ > most_noise * static_cast<double>(sent_ - trial_begin_))
    return refusal_meaning::chance;
  end_trial(true);
  return refusal_meaning::found;
}

/// Hardly ever nothing is refused in so many requests by chance.
std::uint64_t refusal_noise::trial_length() const {
  auto distance = static_cast<double>(sent_ - since_) / static_cast<double>(refusals_);
  return std::max(shortest_trial, static_cast<std::uint64_t>(trial_spans * distance));
}

void refusal_noise::begin_trial() {
  on_trial_ = true;
  trial_end_ = sent_ + trial_length();
  trial_begin_ = last_refused_ = sent_;
  in_row_ = in_trial_ = apart_ = 0;
}

void refusal_noise::end_trial(bool found) {
  on_trial_ = false;
  if (found) {
    auto share = static_cast<double>(refusals_ + 1) / static_cast<double>(sent_ - since_);
    share_ = std::min(most_noise, share);
    most_share_ = std::min(most_noise, share * 1.5);
    score_ = 0;
    failed_trials_ = 0;
  } else {
    failed_trials_ = std::min(failed_trials_ + 1, 10U);
    no_trial_ = sent_ + ((trial_end_ - since_) << (failed_trials_ - 1));
  }
  begin_anew();
}

void refusal_noise::begin_anew() {
  since_ = sent_;
  refusals_ = 0;
  unexpected_ = 0;
}

}  // namespace troupe

#include "runtime/policy/admission.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr double newest_share = 0.1;

double moved(double old, double now) {
  return old + newest_share * (now - old);
}

enum class health : std::uint8_t { alive, ill, untold };

/// What a failure says of the endpoint itself: one that refuses, rightly or not, is alive.
health health_by(failure_class kind) {
  switch (kind) {
  case failure_class::connect:
  case failure_class::timeout:
  case failure_class::server:
  case failure_class::overloaded:
    return health::ill;
  case failure_class::rate_limited:
  case failure_class::quota:
  case failure_class::auth:
  case failure_class::bad_request:
  case failure_class::context_length:
    return health::alive;
  case failure_class::bad_reply:
  case failure_class::cancelled:
  case failure_class::budget:
  case failure_class::unknown:
    return health::untold;
  }
  return health::untold;
}

}  // namespace

double token_estimate::output(std::uint32_t max_output) const {
  return max_output == 0 ? output_ : std::min(output_, static_cast<double>(max_output));
}

token_usage token_estimate::most(const call_size& call) const {
  constexpr double margin = 1.25;
  constexpr std::uint64_t long_reply = 4'096;
  token_usage out;
  out.input = static_cast<std::uint64_t>(input(call.bytes) * margin) + 16;
  out.output = call.max_output != 0 ? call.max_output : std::max(long_reply, 2 * longest_output_);
  return out;
}

void token_estimate::learn(std::size_t bytes, const token_usage& used) {
  if (bytes == 0 || used.input == 0)
    return;  // servers that do not count say 0
  per_byte_ = moved(per_byte_, static_cast<double>(used.input) / static_cast<double>(bytes));
  output_ = moved(output_, static_cast<double>(used.output));
  longest_output_ = std::max(longest_output_, used.output);
}

admission::admission(admission_settings s)
  : rates_{s.rates}, places_{s.places}, breaker_{s.breaker} {}

rate_limit::amounts admission::need(const call_size& call) const {
  auto in = estimate_.input(call.bytes);
  auto out = estimate_.output(call.max_output);
  return {1, in + out, in, out};
}

time_point admission::ready_at(const call_size& call, time_point now) {
  if (in_flight_ >= places_.limit())
    return never;
  auto alive = breaker_.ready_at(now);
  return alive > now ? alive : rates_.ready_at(need(call), now);
}

admission::pass admission::start(const call_size& call, time_point now) {
  ++in_flight_;
  breaker_.started(now);
  return {rates_.take(need(call), now), call.bytes};
}

void admission::end(const pass& p, const try_end& how, const rate_report& stated, time_point now) {
  if (how.failed)
    end_failed(p, *how.failed, how.wait, stated, now);
  else
    end_answered(p, how.used, stated, now);
  --in_flight_;
}

void admission::end_answered(const pass& p, const token_usage& used, const rate_report& stated,
                             time_point now) {
  places_.answered(in_flight_);
  breaker_.succeeded();
  estimate_.learn(p.bytes, used);
  auto in = static_cast<double>(used.input);
  auto out = static_cast<double>(used.output);
  auto amounts = used.total() > 0 ? rate_limit::amounts{1, in + out, in, out} : p.rates.reserved;
  rates_.answered(p.rates, amounts, stated, now);
}

void admission::end_failed(const pass& p, failure_class kind, std::optional<millis> wait,
                           const rate_report& stated, time_point now) {
  auto sent_at = p.rates.sent_at;
  if (kind == failure_class::rate_limited)
    end_refused(p, wait, stated, now);
  else
    rates_.lost(p.rates, stated, now);
  if (kind == failure_class::overloaded)
    places_.refused(true, sent_at, now);
  if (kind == failure_class::overloaded && wait)
    rates_.hold(after(now, *wait));
  auto told = health_by(kind);
  if (told == health::ill)
    breaker_.failed(sent_at, now);
  else if (told == health::alive)
    breaker_.succeeded();
  else
    breaker_.undecided(sent_at);
}

void admission::end_refused(const pass& p, std::optional<millis> wait, const rate_report& stated,
                            time_point now) {
  switch (rates_.refused(p.rates, stated, wait, now)) {
  case refusal_meaning::chance:
    break;
  case refusal_meaning::found:
    places_.forgive();
    break;
  case refusal_meaning::limit:
  case refusal_meaning::unclear:
    places_.refused(false, p.rates.sent_at, now);
    break;
  }
}

void admission::abandon(const pass& p, time_point now) {
  rates_.lost(p.rates, {}, now);
  breaker_.undecided(p.rates.sent_at);
  --in_flight_;
}

}  // namespace troupe

#pragma once
// One call as the model client keeps it.

#include "actors/budget_ledger.hpp"
#include "actors/model_lanes.hpp"

#include <caf/typed_response_promise.hpp>

#include <atomic>
#include <memory>
#include <string>

namespace troupe {

/// A call from its asking to its answer.
struct model_call {
  model_request request;
  job_share from;
  std::shared_ptr<budget_account> payer;
  spending reserved;
  caf::actor viewer;
  caf::typed_response_promise<model_answer> promise;
  time_point asked;
  time_point queued;
  std::uint32_t attempts = 0;  ///< tries begun, of all models
  std::uint32_t choice = 0;
  std::uint32_t tries = 0;   ///< begun with this choice of model, those at once elsewhere left out
  std::uint32_t hops = 0;    ///< tries at once elsewhere since the last pause
  std::uint32_t probes = 0;  ///< its failed ones when the call was queued
  std::size_t lane = model_lanes::none;  ///< of the last try
  admission::pass pass;
  endpoint::ticket ticket = 0;
  bool in_flight = false;
  std::shared_ptr<std::atomic<bool>> shown;  ///< of a call with a viewer: it saw some of a try
};

[[nodiscard]] inline call_size size_of(const model_call& c) {
  auto& settings = c.request.settings;
  return {c.request.messages.size, settings ? settings->max_output_tokens.value_or(0) : 0};
}

/// What a try that we gave up is taken to have used: the provider has read it, and bills it.
[[nodiscard]] inline token_usage abandoned(const model_call& c) {
  token_usage used;
  used.input = c.reserved.tokens.input;
  return used;
}

/// The server's wait, where the user should know of it; and how often it was tried.
inline void explain(model_failure& failure, std::uint32_t attempts, std::string_view why) {
  failure.attempts = attempts;
  if (failure.retry_after && is_transient(failure.kind) && *failure.retry_after >= millis{1000})
    failure.detail +=
      "; the server asks to wait " + std::to_string(failure.retry_after->count() / 1000) + " s";
  if (attempts > 1)
    failure.detail +=
      " (" + std::to_string(attempts) + " tries; gave up: " + std::string{why} + ")";
}

}  // namespace troupe

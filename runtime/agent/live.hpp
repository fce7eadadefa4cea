#pragma once
// What viewers are shown while runs go on. Never acknowledged, never waited for.

#include "runtime/core/ids.hpp"
#include "runtime/core/json.hpp"
#include "runtime/model/chat.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// One thing that happened in a run, for live views. Never acknowledged.
struct run_event {
  run_id run;
  std::string sample;
  /// The journal's kinds, plus what is only shown: "output" {"text"} of a snippet; "reply" {"text"}
  /// and "reasoning" {"text"} of a reply on its way; "reply_again" when that reply begins anew.
  std::string kind;
  json payload;
  std::uint64_t seq = 0;    ///< counts what is shown of this run, from 1: a gap is a loss
  std::string agent{};      ///< its name
  std::uint32_t depth = 0;  ///< of a managed agent's run: 1 below a run that nobody manages
  run_id manager{};         ///< the run that called for it
};

/// How a batch stands.
struct batch_progress {
  std::uint64_t total = 0;
  std::uint64_t done = 0;  ///< runs with a result, earlier sessions included
  std::uint64_t running = 0;
  std::uint64_t failed = 0;  ///< ends other than success
  std::uint64_t scored = 0;
  double score_sum = 0;
  token_usage tokens;
  bool finished = false;
};

/// A bounded inbox outside the actor system; false when it is full.
using event_sink = std::function<bool(const run_event&)>;
using progress_sink = std::function<bool(const batch_progress&)>;

}  // namespace troupe

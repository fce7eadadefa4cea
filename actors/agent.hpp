#pragma once
// The actor of one run. The loop itself is runtime/agent's state machine; this only receives,
// journals, asks and sends.

#include "actors/address.hpp"
#include "actors/budget_ledger.hpp"
#include "actors/event_hub.hpp"
#include "actors/messages.hpp"
#include "runtime/agent/agent_options.hpp"
#include "runtime/model/codec.hpp"

#include <caf/event_based_actor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// What the runs of one agent share. Built once, never changed.
struct agent_context {
  std::shared_ptr<const agent_definition> agent;
  message_encoder encode = nullptr;
  transcript start{nullptr};  ///< react_loop::start_of the two above: shared by all runs
  std::shared_ptr<const tool_set> tools;
  std::shared_ptr<address> model;
  std::shared_ptr<address> executor;  ///< empty: snippets cannot run
  std::shared_ptr<address> journal;   ///< empty: nothing is kept
  std::shared_ptr<address> hub;       ///< empty: nobody looks
  std::shared_ptr<hub_interest> interest;
  std::vector<std::shared_ptr<address>> tool_hosts;
  sandbox_spec sandbox;
  timers* clock = nullptr;
  job_share job;                           ///< whose calls these are, where several share a model
  std::shared_ptr<budget_account> budget;  ///< the runs' pay out of it; empty: nobody counts
  budget_limits run_budget;                ///< of each run by itself
};

/// What is one run's own.
struct agent_run {
  run_id run;
  std::string sample;
  std::vector<sandbox_file> files;
  caf::actor owner;        ///< gets run_finished
  std::uint32_t draw = 0;  ///< of its model requests
  event_sink viewer{};     ///< sees this run alone, on an actor's thread; may be empty
  bool paused = false;     ///< begins with its gate shut
};

/// Understands run_start, run_cancel, run_gate and stop (as a cancel); quits after run_finished.
/// Every event is durable in the journal before what follows from it begins. Behind a shut gate the
/// next ask of the model is held; deadlines go on.
[[nodiscard]] caf::actor spawn_agent(caf::actor_system& sys,
                                     std::shared_ptr<const agent_context> context, agent_run run);

}  // namespace troupe

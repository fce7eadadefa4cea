#pragma once
// The actor of one run. The loop itself is runtime/agent's state machine; this only receives,
// journals, asks and sends.

#include "actors/address.hpp"
#include "actors/budget_ledger.hpp"
#include "actors/event_hub.hpp"
#include "actors/messages.hpp"
#include "runtime/agent/agent_options.hpp"
#include "runtime/model/codec.hpp"
#include "runtime/policy/hooks.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Where the runs of one runtime get their ids: unique in its journal.
class run_numbers {
public:
  explicit run_numbers(run_id first = run_id{1}) : next_{first.value} {}
  [[nodiscard]] run_id take() noexcept { return run_id{next_++}; }

private:
  std::atomic<std::uint64_t> next_;
};

struct agent_context;

/// An agent that another one calls as a tool.
struct managed_agent {
  tool_spec tool;                             ///< managed_agent_tool of its options
  std::shared_ptr<const tool_set> arguments;  ///< fits them to the tool, and gives them back
  std::shared_ptr<const agent_context> agent;
};

/// Errors  invalid_argument: its name is none that a tool may have.
[[nodiscard]] result<managed_agent> make_managed_agent(std::shared_ptr<const agent_context> agent);

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
  std::shared_ptr<address> agents;  ///< the supervisor that starts the runs of `team`
  std::shared_ptr<run_numbers> numbers;
  std::vector<managed_agent> team;
  std::uint32_t levels = 0;                            ///< of agents below this one
  std::shared_ptr<const std::vector<run_hook>> hooks;  ///< empty: none; valid
  std::vector<std::shared_ptr<address>> tool_hosts;
  /// Who answers calls of these tools instead of a tool host, by the same message.
  std::map<std::string, std::shared_ptr<address>> served;
  sandbox_spec sandbox;
  timers* clock = nullptr;
  job_share job;                           ///< whose calls these are, where several share a model
  std::shared_ptr<budget_account> budget;  ///< the runs' pay out of it; empty: nobody counts
  budget_limits run_budget;                ///< of each run by itself
};

/// The run and call that a managed agent works for.
struct managed_by {
  run_id run;
  call_id call;
  std::uint32_t depth = 1;                  ///< 1 below a run that nobody manages
  std::shared_ptr<budget_account> payer{};  ///< the manager's
  job_share job{};                          ///< the manager's
  bool lends = false;                       ///< its sandbox, for this one's code
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
  /// Of a managed agent's run.
  std::shared_ptr<const managed_by> manager{};  // most runs have none: it takes no room
};

/// Understands run_start, run_cancel, run_gate and stop (as a cancel); quits after run_finished.
/// Every event is durable in the journal before what follows from it begins. Behind a shut gate the
/// next ask of the model is held; deadlines go on.
[[nodiscard]] caf::actor spawn_agent(caf::actor_system& sys,
                                     std::shared_ptr<const agent_context> context, agent_run run);

}  // namespace troupe

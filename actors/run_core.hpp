#pragma once
// What the parts of one run's actor have in common.

#include "actors/agent.hpp"
#include "actors/hook_gate.hpp"
#include "actors/run_log.hpp"
#include "runtime/agent/agent_machine.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

/// What a run tells of itself at its end, beside what its loop does.
struct run_totals {
  std::uint32_t sandboxes = 0;
  std::uint32_t tool_calls = 0;
  micros model_wait{0};
  std::string model;  ///< all that answered, by name

  /// A fallback may have answered some of the turns: all who did are named.
  void answered_by(const std::string& who);
};

/// The actor's own: none of the parts outlives it.
class run_core {
public:
  run_core(caf::event_based_actor* actor, std::shared_ptr<const agent_context> shared,
           agent_run own);
  run_core(const run_core&) = delete;
  run_core& operator=(const run_core&) = delete;

  /// The loop's next event. One at a time: it waits until what those before it say is durable.
  /// `then` once this one is, or was ignored.
  virtual void apply(agent_event event, std::function<void()> then = {}) = 0;

  [[nodiscard]] bool hooked(hook_point at) const { return hooks && hooks->wants(at); }

  /// Runs `then` with what the hooks say; at once when there is none of that point.
  template <class Then>
  void by_leave(hook_point at, json what, Then then) {
    if (hooked(at))
      hooks->ask(at_hook(at, std::move(what)), std::move(then));
    else
      then(hook_verdict{});
  }

  /// `what` is only made when somebody hears it.
  template <class What>
  void tell_hooks(hook_point at, What what) const {
    if (hooked(at))
      hooks->tell(at_hook(at, what()));
  }

  [[nodiscard]] time_point now() const { return context->clock->now(); }

  /// Whose calls its own are.
  [[nodiscard]] job_share job() const { return run.manager ? run.manager->job : context->job; }

  caf::event_based_actor* self;
  std::shared_ptr<const agent_context> context;
  agent_run run;
  agent_machine machine;
  std::shared_ptr<budget_account> payer;
  std::unique_ptr<hook_gate> hooks;  ///< null: nobody is asked
  run_log log;
  run_totals totals;
  /// The model call or snippet whose answer still counts.
  std::uint64_t effect = 0;

  /// Before the loop hears of it.
  virtual void on_code_end() = 0;

  /// What cannot be written must not happen: the run ends here, and its sample is run again later.
  virtual void on_journal_failure(const error& why) = 0;

protected:
  ~run_core() = default;

private:
  [[nodiscard]] hook_event at_hook(hook_point at, json what) const;
  void note_hook(const run_hook& hook, const hook_event& e, std::string_view did,
                 const std::string& why);
};

}  // namespace troupe

#pragma once
// The ReAct loop of an agent that acts by writing Python, as a pure state machine: an event and
// the time in, commands out. No I/O, no clock, no CAF.

#include "runtime/agent/react_loop.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// One run. Value: a copy is a branch.
class code_agent : public react_loop {
public:
  /// `start` is a copy of `start_of(definition, encode)`; `encode` is the endpoint's message
  /// encoder.
  code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
             transcript start, run_id run);

  /// Takes one event, returns what to do now, in order. Events that do not fit the state (a late
  /// reply after `abandon`) are ignored. After `finish` it always returns nothing.
  /// Notes   "action" {step, code, source}, "observation" {step, text, is_error}, "final_answer"
  ///         {step, text, value, accepted, forced, why?}.
  [[nodiscard]] std::vector<agent_command> on(const agent_event& event, time_point now);

private:
  using react_loop::take;
  void take(const model_replied& e, time_point now, commands& out);
  void take(const snippet_done& e, time_point now, commands& out);
  void take(const sandbox_failed& e, time_point now, commands& out);
  void take(const tool_replied& e, time_point now, commands& out);

  void act(const model_reply& reply, time_point now, commands& out);
  [[nodiscard]] std::string why_not_run(bool cut_short) const;
  void run(bool may_be_prose, time_point now, commands& out);
  void answer_by_code(const snippet_outcome& outcome, commands& out);

  std::string action_;        ///< the code that runs, or the reply that held none
  std::string format_error_;  ///< what the model is told if the action is no code
};

}  // namespace troupe

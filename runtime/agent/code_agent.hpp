#pragma once
// The ReAct loop of an agent that acts by writing Python, as a pure state machine: an event and
// the time in, commands out. No I/O, no clock, no CAF.

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/events.hpp"
#include "runtime/model/codec.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One run. Value: a copy is a branch.
class code_agent {
public:
  /// `encode` is the endpoint's message encoder.
  code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
             run_id run);

  /// The same with a copy of `start_of(definition, encode)`: the runs of one agent then share the
  /// bytes of their system prompt.
  code_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
             transcript start, run_id run);

  /// A conversation that holds the system prompt, or nothing when that depends on the task.
  [[nodiscard]] static transcript start_of(const agent_definition& definition,
                                           message_encoder encode);

  /// The same for options that are not prepared: prepares them, which costs milliseconds. Throws
  /// std::invalid_argument when they are not valid.
  code_agent(std::shared_ptr<const agent_options> options, message_encoder encode, run_id run);

  /// Takes one event, returns what to do now, in order. Events that do not fit the state (a late
  /// reply after `abandon`) are ignored. After `finish` it always returns nothing.
  /// Notes   "action" {step, code, source}, "observation" {step, text, is_error}, "final_answer"
  ///         {step, text, value, accepted, forced, why?}.
  [[nodiscard]] std::vector<agent_command> on(const agent_event& event, time_point now);

  [[nodiscard]] bool finished() const noexcept { return at_ == state::done; }

  /// Steps begun, from 1; 0 before the start. The forced answer is one more.
  [[nodiscard]] std::uint32_t step() const noexcept { return step_; }

  /// When `deadline_passed` is due; never without run_time. Valid after run_started.
  [[nodiscard]] time_point deadline() const noexcept { return deadline_; }

  [[nodiscard]] const transcript& messages() const noexcept { return messages_; }

private:
  enum class state : std::uint8_t { idle, thinking, running, answering, done };
  using commands = std::vector<agent_command>;

  void take(const run_started& e, time_point now, commands& out);
  void take(const model_replied& e, time_point now, commands& out);
  void take(const model_failed& e, time_point now, commands& out);
  void take(const snippet_done& e, time_point now, commands& out);
  void take(const sandbox_failed& e, time_point now, commands& out);
  void take(const cancel_requested& e, time_point now, commands& out);
  void take(const deadline_passed& e, time_point now, commands& out);

  void act(const model_reply& reply, time_point now, commands& out);
  [[nodiscard]] std::string why_not_run(bool cut_short) const;
  void run(bool may_be_prose, time_point now, commands& out);
  void answer_by_text(const model_reply& reply, commands& out);
  void answer_by_code(const snippet_outcome& outcome, commands& out);
  void go_on(std::string text, bool is_error, commands& out);
  void ask(commands& out);
  void ask_for_answer(commands& out);
  void interrupt(run_end end, std::string why, commands& out);
  void end_run(run_end end, std::optional<value> answer, std::string why, commands& out);

  [[nodiscard]] result<void> checked(const value& answer) const;
  [[nodiscard]] std::uint32_t count_repeats(std::string_view observation);
  void say(role from, std::string content);
  [[nodiscard]] const agent_options& options() const noexcept { return definition_->options; }

  std::shared_ptr<const agent_definition> definition_;
  message_encoder encode_;
  transcript messages_;
  std::string task_;
  std::string action_;           ///< the code that runs, or the reply that held none
  std::string format_error_;     ///< what the model is told if the action is no code
  std::uint64_t last_turn_ = 0;  ///< hash of the last action and observation
  time_point deadline_ = never;
  finish totals_;
  run_id run_;
  std::uint32_t step_ = 0;
  std::uint32_t repeats_ = 0;
  state at_ = state::idle;
};

}  // namespace troupe

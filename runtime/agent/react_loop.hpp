#pragma once
// What the loops of all kinds of agent share: memory, steps and budgets, the answer that is forced
// at max steps, the checks of answers, turns in circles, and every end. A kind adds what it does
// with a reply.

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/events.hpp"
#include "runtime/model/codec.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Value: a copy is a branch. Pure: no I/O, no clock.
class react_loop {
public:
  /// A conversation that holds the system prompt, or nothing when that depends on the task. Runs
  /// that begin with copies of it share its bytes.
  [[nodiscard]] static transcript start_of(const agent_definition& definition,
                                           message_encoder encode);

  [[nodiscard]] bool finished() const noexcept { return at_ == phase::done; }

  /// Steps begun, from 1; 0 before the start. The forced answer is one more.
  [[nodiscard]] std::uint32_t step() const noexcept { return step_; }

  /// When `deadline_passed` is due; never without run_time. Valid after run_started.
  [[nodiscard]] time_point deadline() const noexcept { return deadline_; }

  [[nodiscard]] const transcript& messages() const noexcept { return messages_; }

protected:
  enum class phase : std::uint8_t { idle, thinking, acting, answering, done };
  using commands = std::vector<agent_command>;

  /// `start` is a copy of `start_of(definition, encode)`; `encode` is the endpoint's.
  react_loop(std::shared_ptr<const agent_definition> definition, message_encoder encode,
             transcript start, run_id run);

  void take(const run_started& e, time_point now, commands& out);
  void take(const model_failed& e, time_point now, commands& out);
  void take(const cancel_requested& e, time_point now, commands& out);
  void take(const deadline_passed& e, time_point now, commands& out);

  /// What a managed agent has spent is this run's too.
  void charge(const tool_replied& e);

  /// What only another kind of agent has asked for.
  void take(const auto&, time_point, commands&) {}

  /// False for a reply that nobody waits for; else it is counted.
  [[nodiscard]] bool awaited(const model_reply& reply);

  /// The phase in which replies are answers: the forced one, by its text.
  void answer_by_text(const model_reply& reply, commands& out);

  /// The same with a value.
  void answer_forced(value answer, commands& out);

  /// There is no forced answer, and `why`.
  void no_forced_answer(std::string_view why, commands& out);

  /// Checks an answer and notes it. Errors: why it is refused, for the model.
  [[nodiscard]] result<void> judge(const value& answer, bool forced, commands& out) const;

  /// Notes what the turn's action came to. Returns what its message must end with: a nudge when the
  /// same action has had the same outcome too often, else "".
  [[nodiscard]] std::string_view observe(std::string_view action, std::string_view text,
                                         bool is_error, commands& out);

  /// `observe`, and the message to the model by the user's role. Then the next step.
  void go_on(std::string_view action, std::string text, bool is_error, commands& out);

  /// The next step, or the end of a run that turns in circles.
  void go_on(commands& out);

  void end_run(run_end end, std::optional<value> answer, std::string why, commands& out);
  void say(role from, std::string content);
  [[nodiscard]] const agent_options& options() const noexcept { return definition_->options; }

  transcript messages_;
  finish totals_;
  phase at_ = phase::idle;

private:
  void ask(commands& out);
  void ask_for_answer(commands& out);
  void interrupt(run_end end, std::string why, commands& out);
  [[nodiscard]] result<void> checked(const value& answer) const;
  void count_repeats(std::string_view action, std::string_view observation);
  [[nodiscard]] std::string no_answer_yet() const;

  std::shared_ptr<const agent_definition> definition_;
  message_encoder encode_;
  std::string task_;
  std::uint64_t last_turn_ = 0;  ///< hash of the last action and observation
  time_point deadline_ = never;
  millis time_{0};  ///< that the run has in all; 0: no limit
  run_id run_;
  std::uint32_t step_ = 0;
  std::uint32_t repeats_ = 0;
};

}  // namespace troupe

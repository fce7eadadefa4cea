#pragma once
// What the loops of all kinds of agent share: memory, steps and budgets, plans, the context window,
// the answer that is forced at max steps, the form and the checks of answers, turns in circles, and
// every end. A kind adds what it does with a reply.

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/events.hpp"
#include "runtime/agent/memory.hpp"
#include "runtime/core/boxed.hpp"
#include "runtime/model/codec.hpp"
#include "runtime/policy/context.hpp"

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

  /// Steps begun, from 1; 0 before the start. The forced answer is one more; plans are none.
  [[nodiscard]] std::uint32_t step() const noexcept { return step_; }

  /// When `deadline_passed` is due; never without run_time. Valid after run_started.
  [[nodiscard]] time_point deadline() const noexcept { return deadline_; }

  [[nodiscard]] const transcript& messages() const noexcept { return memory_.messages(); }

protected:
  enum class phase : std::uint8_t {
    idle,
    thinking,     ///< the model is asked for an action
    acting,       ///< its action is carried out
    answering,    ///< the model is asked for the forced answer
    planning,     ///< for a plan
    summarising,  ///< for a summary, since the context is full
    done
  };
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

  /// Counts a reply. Plans and summaries are dealt with here. True when the reply is the kind's: an
  /// action, or an answer while the phase is `answering`.
  [[nodiscard]] bool is_for_kind(const model_reply& reply, commands& out);

  /// The phase in which replies are answers: the forced one, by its text.
  void answer_by_text(const model_reply& reply, commands& out);

  /// The same with a value.
  void answer_forced(value answer, commands& out);

  /// There is no forced answer, and `why`.
  void no_forced_answer(std::string_view why, commands& out);

  /// Checks an answer, after it was made to fit the form that is asked for, and notes it.
  /// Errors  why it is refused, for the model.
  [[nodiscard]] result<void> judge(value& answer, bool forced, commands& out);

  /// Ends a run that has given too many answers of another form, `why` being what was wrong with
  /// the last; true when it did.
  [[nodiscard]] bool gave_up(std::string_view why, commands& out);

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

  /// Of the parts of an observation, and of all of it, as options and context window have it.
  [[nodiscard]] observation_limits limits() const;

  run_memory memory_;
  finish totals_;
  phase at_ = phase::idle;

private:
  /// What few runs have.
  struct rare_state {
    std::vector<std::string> images{};  ///< of the task
    phase wanted = phase::idle;         ///< what is asked for after the summary
    std::optional<transcript> asked{};  ///< for the forced answer, to be asked again
  };

  void interrupt(run_end end, std::string why, commands& out);
  [[nodiscard]] result<void> checked(const value& answer) const;
  void count_repeats(std::string_view action, std::string_view observation);
  [[nodiscard]] std::string no_answer_yet() const;
  [[nodiscard]] bool is_asked() const noexcept;
  [[nodiscard]] chat_message task_message() const;

  // What the model is asked for: react_requests.cpp.
  void ask(commands& out);
  [[nodiscard]] bool spent_budget(commands& out);
  [[nodiscard]] bool plan_is_due() const noexcept;
  [[nodiscard]] bool is_first_plan() const noexcept;
  void request(phase what, commands& out);
  void send(phase what, commands& out);
  void send(const std::shared_ptr<const model_settings>& settings, const transcript& conversation,
            commands& out) const;
  [[nodiscard]] transcript forced_conversation() const;
  [[nodiscard]] transcript plan_conversation() const;
  void ask_forced_again(const value& answer, std::string_view why, commands& out);
  void take_plan(const model_reply& reply, commands& out);
  [[nodiscard]] bool asks_for_room(phase what, commands& out);
  void ask_summary(phase then, commands& out);
  void take_summary(std::string_view text, commands& out);
  [[nodiscard]] bool retry_shorter(const model_failure& failure, commands& out);
  [[nodiscard]] bool make_room(std::uint8_t way, phase what, commands& out);
  [[nodiscard]] bool retry_plainly(const model_failure& failure, commands& out);
  [[nodiscard]] bool note_compaction(std::string_view how, const compaction& done,
                                     std::string_view text, commands& out) const;

  std::shared_ptr<const agent_definition> definition_;
  message_encoder encode_;
  std::string task_;
  boxed<rare_state> rare_;
  std::uint64_t last_turn_ = 0;  ///< hash of the last action and observation
  time_point deadline_ = never;
  millis time_{0};  ///< that the run has in all; 0: no limit
  run_id run_;
  context_gauge gauge_;
  std::uint32_t step_ = 0;
  std::uint32_t repeats_ = 0;
  std::uint32_t planned_ = 0;  ///< the step that the last plan was made for
  std::uint32_t misfits_ = 0;  ///< answers that did not have the form that is asked for
  std::uint8_t refusals_ = 0;  ///< ways tried to make one request short enough
  bool plain_output_ = false;  ///< the provider takes no output schema
};

}  // namespace troupe

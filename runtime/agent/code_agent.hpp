#pragma once
// The ReAct loop of an agent that acts by writing Python, as a pure state machine: an event and
// the time in, commands out. No I/O, no clock, no CAF.

#include "runtime/agent/events.hpp"
#include "runtime/model/codec.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The texts of a code agent, as Jinja templates. Keys and variables are smolagents'.
struct prompt_set {
  std::string system_prompt;
  std::string final_answer_pre;   ///< system message of the forced answer at max steps
  std::string final_answer_post;  ///< its user message; variable `task`
};

/// A named test of an answer before it is accepted. Pure: it may be called again on replay.
struct final_check {
  std::string name;
  std::function<result<void>(const value& answer)> check;
};

/// What makes an agent. Built once, shared by its runs, never changed.
struct agent_options {
  std::string name = "agent";
  prompt_set prompts;
  std::string instructions;            ///< appended to the system prompt by the template
  std::string code_open = "<code>";    ///< literal text, not a pattern
  std::string code_close = "</code>";
  model_settings model;                ///< stop sequences and tools are filled in by the loop
  std::vector<tool_spec> tools;        ///< final_answer among them
  std::vector<std::string> imports;    ///< told to the model; enforced by the executor

  std::uint32_t max_steps = 20;        ///< model replies before the forced answer; at least 1
  millis run_time{0};                  ///< wall time of the whole run; 0: none
  millis step_time{30'000};            ///< soft deadline of a snippet
  millis step_grace{5'000};            ///< from soft to hard deadline
  std::uint64_t token_budget = 0;      ///< input and output of the whole run; 0: none
  std::uint32_t repeat_limit = 3;      ///< same action and observation so often: nudge, then stuck

  std::size_t max_log_bytes = 50'000;  ///< of an observation's logs (middle cut, with a notice)
  std::size_t max_value_bytes = 20'000;
  std::size_t max_error_bytes = 10'000;
  std::vector<final_check> checks;
};

/// Errors  invalid_argument: what is wrong (max_steps 0, a template with a typo, tag empty, ...).
[[nodiscard]] result<void> validate(const agent_options& options);

/// One run. Value: a copy is a branch.
class code_agent {
public:
  /// `options` must be valid. `encode` is the endpoint's message encoder.
  code_agent(std::shared_ptr<const agent_options> options, message_encoder encode, run_id run);

  /// Takes one event, returns what to do now, in order. Events that do not fit the state (a late
  /// reply after `abandon`) are ignored. After `finish` it always returns nothing.
  [[nodiscard]] std::vector<agent_command> on(const agent_event& event, time_point now);

  [[nodiscard]] bool finished() const noexcept;

  /// Steps begun, from 1; 0 before the start.
  [[nodiscard]] std::uint32_t step() const noexcept;

  /// When `deadline_passed` is due; never without run_time. Valid after run_started.
  [[nodiscard]] time_point deadline() const noexcept;

  [[nodiscard]] const transcript& messages() const noexcept;

private:
  std::shared_ptr<const agent_options> options_;
};

}  // namespace troupe

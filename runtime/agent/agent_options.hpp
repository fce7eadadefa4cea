#pragma once
// What makes an agent, and its prepared form that thousands of runs share.

#include "runtime/agent/agent_kind.hpp"
#include "runtime/agent/answer_shape.hpp"
#include "runtime/agent/observation.hpp"
#include "runtime/agent/prompt.hpp"
#include "runtime/core/time.hpp"
#include "runtime/core/value.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/policy/context.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What ends a plan, in the text of the model that makes it.
constexpr std::string_view end_of_plan = "<end_plan>";

/// A named test of an answer before it is accepted. Pure: it may be called again on replay. One
/// that throws has refused the answer.
struct final_check {
  std::string name{};
  std::function<result<void>(const value& answer)> check;
};

/// What makes an agent. Built once, shared by its runs, never changed.
struct agent_options {
  agent_kind kind = agent_kind::code;
  std::string name = "agent";
  std::string description{};  ///< for its manager's model, where it is managed
  prompt_set prompts{};
  std::string instructions{};        ///< put into the system prompt by the template
  std::string code_open = "<code>";  ///< literal text, not a pattern
  std::string code_close = "</code>";
  bool structured = false;             ///< a code agent's replies are JSON {"thought", "code"}
  model_settings model{};              ///< stop sequences and tools are added to by the loop
  std::vector<tool_spec> tools{};      ///< final_answer among them
  std::vector<tool_spec> managed{};    ///< agents that it may call: managed_agent_tool of each
  bool share_sandbox = false;          ///< its agents' code runs in one sandbox, its own
  std::vector<std::string> imports{};  ///< told to the model; enforced by the executor
  call_protocol calls = call_protocol::native;  ///< of a tool-calling agent, as is the next
  tool_choice::mode choice = tool_choice::mode::required;  ///< native: automatic or required

  std::uint32_t max_steps = 20;         ///< model replies before the forced answer; at least 1
  millis run_time{0};                   ///< wall time of the whole run; 0: none
  millis step_time{30'000};             ///< soft deadline of a snippet
  millis step_grace{5'000};             ///< from soft to hard deadline
  std::uint64_t token_budget = 0;       ///< input and output of the whole run; 0: none
  std::uint32_t planning_interval = 0;  ///< a plan before the first step and after so many more;
                                        ///< 0: none. Its call is a turn, but no step
  context_settings context{};
  std::uint32_t repeat_limit = 3;  ///< same action and observation so often: nudge, once more:
                                   ///< stuck; 0: never, else at least 2

  std::size_t max_log_bytes = 50'000;  ///< of an observation's logs (middle cut, with a notice)
  std::size_t max_value_bytes = 20'000;
  std::size_t max_error_bytes = 10'000;
  std::size_t max_code_bytes = 256u << 10;   ///< longer code, or arguments of a turn's calls
                                             ///< together, is refused and not run
  std::uint32_t max_calls = 32;              ///< in one reply; of more none is carried out
  std::size_t max_reply_bytes = 256u << 10;  ///< of a reply as it is kept in memory (middle cut)
  std::vector<final_check> checks{};
  ordered_json answer_schema{};      ///< JSON Schema of the answer; null: any answer will do
  std::uint32_t answer_retries = 3;  ///< so many answers of another form are asked for again; one
                                     ///< more ends the run as error
};

/// Errors  invalid_argument: what is wrong (max_steps 0, a template with a typo, tag empty, ...).
[[nodiscard]] result<void> validate(const agent_options& options);

/// Options that have been checked, with all that is the same in every run done once: prompts
/// rendered, model settings built. Immutable.
struct agent_definition {
  agent_options options;
  std::string system_prompt{};  ///< rendered; empty when it depends on the task
  prompt_template system_template;
  prompt_template final_answer_pre;
  prompt_template final_answer_post;
  prompt_template managed_task;
  prompt_template managed_report;
  std::shared_ptr<const model_settings> settings{};
  std::shared_ptr<const model_settings> forced_settings{};  ///< in which nothing is acted upon
  /// The two without an output schema, for a provider that refuses it.
  std::shared_ptr<const model_settings> plain_settings{};
  std::shared_ptr<const model_settings> plain_forced_settings{};
  std::shared_ptr<const model_settings> plan_settings{};
  prompt_template initial_plan;
  prompt_template update_plan_pre;
  prompt_template update_plan_post;
  prompt_template context_summary;
  std::optional<answer_shape> shape{};  ///< of options.answer_schema

  /// The system prompt of a run on that task.
  [[nodiscard]] std::string system_for(const std::string& task) const;

  /// The forced answer's messages.
  [[nodiscard]] std::string forced_pre(const std::string& task) const;
  [[nodiscard]] std::string forced_post(const std::string& task) const;

  /// The messages that ask for a plan: the only one of the first plan, and the system and the user
  /// message around the memory for a later one.
  [[nodiscard]] std::string first_plan(const std::string& task) const;
  [[nodiscard]] std::string plan_pre(const std::string& task) const;
  [[nodiscard]] std::string plan_post(const std::string& task, std::uint32_t remaining_steps) const;

  /// The message that asks for a summary of the memory.
  [[nodiscard]] std::string summary_prompt(const std::string& task) const;

  /// As a managed agent: a manager's task as this agent's, its answer as the manager reads it.
  [[nodiscard]] std::string task_for(const std::string& task) const;
  [[nodiscard]] std::string report_of(const std::string& answer) const;
};

/// Checks and prepares. Costs milliseconds (templates are parsed): once per agent, not per run.
/// Errors  as validate.
[[nodiscard]] result<std::shared_ptr<const agent_definition>> define_agent(agent_options options);

}  // namespace troupe

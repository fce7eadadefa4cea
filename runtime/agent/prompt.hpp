#pragma once
// An agent's prompts: the set of templates, the file they come from, and rendering.

#include "runtime/agent/agent_kind.hpp"
#include "runtime/core/error.hpp"
#include "runtime/model/tool_spec.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// The texts of an agent, as Jinja templates. Keys and variables are smolagents'.
struct prompt_set {
  std::string system_prompt{};      ///< variables: system_variables()
  std::string final_answer_pre{};   ///< system message of the forced answer at max steps
  std::string final_answer_post{};  ///< its user message; variable `task`
  std::string initial_plan{};       ///< planning: task, tools, managed_agents
  std::string update_plan_pre{};    ///< task
  std::string update_plan_post{};   ///< task, tools, managed_agents, remaining_steps
  std::string managed_task{};       ///< wraps a managed agent's task: name, task
  std::string managed_report{};     ///< wraps its answer: name, final_answer

  bool operator==(const prompt_set&) const = default;
};

/// Reads a prompt file: YAML with the keys system_prompt, final_answer.{pre_messages,
/// post_messages} (needed), planning.{initial_plan, update_plan_pre_messages,
/// update_plan_post_messages} and managed_agent.{task, report} (optional).
/// Errors  invalid_argument: not YAML (line, column), a key missing or unknown (nearest suggested),
///         a value that is no text. Templates themselves are checked by `prompt_template::parse`.
[[nodiscard]] result<prompt_set> load_prompts(std::string_view yaml_text);

/// What one file says of an agent's prompts.
struct given_prompts {
  prompt_set texts{};  ///< those that it does not give are empty
  /// By key, e.g. "planning.initial_plan": the file and the line of its text, for messages.
  std::vector<std::pair<std::string, std::string>> places{};

  /// `usual` with these in the place of its own.
  [[nodiscard]] prompt_set over(prompt_set usual) const;

  /// `detail`, which begins with a prompt's key, with the place of that prompt before it.
  [[nodiscard]] std::string placed(const std::string& detail) const;
};

/// Reads the prompts that a YAML text gives, all of them optional. `file` stands in messages.
/// Errors  as load_prompts, without the keys that are missing.
[[nodiscard]] result<given_prompts> load_given_prompts(std::string_view yaml_text,
                                                       const std::string& file);

/// The set that ships for agents of that kind: config/prompts/{code,tool}_agent.yaml, built into
/// the library.
[[nodiscard]] const prompt_set& shipped_prompts(agent_kind kind = agent_kind::code);

/// What templates may refer to.
struct prompt_variables {
  std::vector<tool_spec> tools{};
  std::vector<std::pair<std::string, std::string>> texts{};  ///< by name; names are unique
};

/// One parsed template. Cheap to copy; rendering is thread-safe.
class prompt_template {
public:
  /// Shape   `name` stands in messages, e.g. "system_prompt"; `variables` are all names that may
  ///         occur. `tools` and `managed_agents` answer `values()`; a tool has name, description,
  ///         inputs, output_type, to_code_prompt() and to_tool_calling_prompt().
  /// Errors  invalid_argument: "<name>, line 3: unknown name 'tsk' (did you mean 'task'?)", or a
  ///         syntax error with its place. A name is accepted undefined where the template tests it
  ///         with `is defined` or gives it a default.
  [[nodiscard]] static result<prompt_template> parse(std::string name, std::string_view source,
                                                     std::vector<std::string> variables);

  /// Errors  invalid_argument: a name that is not defined at that place, or what the engine says;
  ///         with the template's name and line.
  [[nodiscard]] result<std::string> render(const prompt_variables& variables) const;

  /// True when the variable occurs.
  [[nodiscard]] bool uses(std::string_view variable) const;

private:
  struct parsed;
  explicit prompt_template(std::shared_ptr<const parsed> p) : parsed_{std::move(p)} {}
  std::shared_ptr<const parsed> parsed_{};
};

/// The names that a system prompt may use: tools, managed_agents, custom_instructions,
/// authorized_imports, code_block_opening_tag, code_block_closing_tag, tool_protocol ("native" or
/// "text"), task.
[[nodiscard]] std::vector<std::string> system_variables();

/// The allow-list as a prompt shows it; an empty list or one with "*" allows all.
[[nodiscard]] std::string imports_text(const std::vector<std::string>& imports);

}  // namespace troupe

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/python_name.hpp"
#include "runtime/model/tool_schema.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

/// What providers accept at most. Source: OpenAI API reference, "stop".
constexpr std::size_t max_stop_sequences = 4;

tl::unexpected<error> invalid(std::string what) {
  return fail(errc::invalid_argument, std::move(what));
}

result<void> check_numbers(const agent_options& o) {
  if (o.max_steps == 0)
    return invalid("max_steps must be at least 1");
  if (o.repeat_limit == 1)
    return invalid("repeat_limit must be 0 (never) or at least 2");
  if (o.run_time < millis{0} || o.step_grace < millis{0})
    return invalid("run_time and step_grace must not be negative");
  if (o.step_time <= millis{0})
    return invalid("step_time must be more than 0");
  if (o.max_calls == 0)
    return invalid("max_calls must be at least 1");
  return {};
}

result<void> check_choice(const agent_options& o) {
  if (o.choice != tool_choice::mode::automatic && o.choice != tool_choice::mode::required)
    return invalid("choice must be automatic or required: the agent acts by calling tools");
  return {};
}

result<void> check_tags(const agent_options& o) {
  if (o.code_open.empty() || o.code_close.empty())
    return invalid("code tags must not be empty");
  return {};
}

result<void> check_name(const std::string& what, const tool_spec& tool, const agent_options& o,
                        std::set<std::string_view>& seen) {
  auto who = what + " '" + tool.name + "': ";
  if (!is_python_identifier(tool.name) || is_python_keyword(tool.name))
    return invalid(who + "its name is no Python identifier");
  if (is_python_builtin(tool.name))
    return invalid(who + "its name is that of one of Python's own functions, which it would hide");
  if (!seen.insert(tool.name).second)
    return invalid(who + "the name is taken by "
                   + (tool.name == o.name ? "the agent itself" : "another tool or agent"));
  return {};
}

result<void> check_tools(const agent_options& o) {
  std::set<std::string_view> seen{o.name};
  for (auto& tool : o.tools)
    if (auto ok = check_name("tool", tool, o, seen); !ok)
      return ok;
  for (auto& agent : o.managed) {
    if (auto ok = check_name("managed agent", agent, o, seen); !ok)
      return ok;
    if (agent.description.empty())
      return invalid("managed agent '" + agent.name
                     + "': it needs a description, by which its manager's model chooses it");
  }
  if (std::none_of(o.tools.begin(), o.tools.end(), [](auto& t) { return t.ends_run; }))
    return invalid("no tool ends the run: add final_answer to the tools");
  return {};
}

result<void> check_checks(const agent_options& o) {
  for (auto& check : o.checks)
    if (check.name.empty() || !check.check)
      return invalid("a final check needs a name and a function");
  return {};
}

result<void> check_plain(const agent_options& o) {
  for (auto* check : {check_numbers, check_choice, check_tags, check_tools, check_checks})
    if (auto ok = check(o); !ok)
      return ok;
  return {};
}

/// Parses the templates that are not rendered here, so that a typo shows now and not in a run.
result<void> check_other_prompts(const prompt_set& prompts) {
  struct {
    std::string name;
    const std::string& text;
    std::vector<std::string> variables;
  } const others[] = {
    {"planning.initial_plan", prompts.initial_plan, {"task", "tools", "managed_agents"}},
    {"planning.update_plan_pre_messages", prompts.update_plan_pre, {"task"}},
    {"planning.update_plan_post_messages",
     prompts.update_plan_post,
     {"task", "tools", "managed_agents", "remaining_steps"}},
  };
  for (auto& other : others)
    if (auto parsed = prompt_template::parse(other.name, other.text, other.variables); !parsed)
      return fail(parsed.error());
  return {};
}

bool speaks_natively(const agent_options& o) {
  return o.kind == agent_kind::tool_calling && o.calls == call_protocol::native;
}

/// What ends a reply that goes on as if it had been answered. Natively nothing does: calls come
/// after the text, and would be cut with it.
std::vector<std::string> stops_of(const agent_options& o) {
  if (speaks_natively(o))
    return {};
  std::vector<std::string> out{"Observation:"};
  if (o.kind != agent_kind::code)
    return out;
  out.emplace_back("Calling tools:");
  if (o.code_open.find(o.code_close) == std::string::npos)
    out.push_back(o.code_close);  // part of the opening tag, it would stop every reply at its start
  return out;
}

std::vector<tool_spec> plain_tools(const agent_options& o) {
  auto out = o.tools;
  out.insert(out.end(), o.managed.begin(), o.managed.end());
  for (auto& tool : out)
    tool.parameters = plain_parameters(tool.parameters);
  return out;
}

result<std::shared_ptr<const model_settings>> acting_settings(const agent_options& o) {
  auto settings = o.model;
  for (auto& stop : stops_of(o))
    if (std::find(settings.stop.begin(), settings.stop.end(), stop) == settings.stop.end())
      settings.stop.push_back(stop);
  settings.tools.clear();
  if (speaks_natively(o)) {
    settings.tools = plain_tools(o);
    settings.choice.how = o.choice;
  }
  if (settings.stop.size() > max_stop_sequences)
    return invalid("stop: " + std::to_string(settings.stop.size())
                   + " sequences with the agent's own, " + "at most "
                   + std::to_string(max_stop_sequences) + " are possible");
  return std::make_shared<const model_settings>(std::move(settings));
}

/// Servers refuse a history with calls in it beside a request that names no tools.
std::shared_ptr<const model_settings> answering_settings(const agent_options& o) {
  auto settings = o.model;
  settings.tools.clear();
  if (speaks_natively(o)) {
    settings.tools = plain_tools(o);
    settings.choice.how = tool_choice::mode::none;
  }
  return std::make_shared<const model_settings>(std::move(settings));
}

prompt_variables system_texts(const agent_options& o, const std::string& task) {
  return {o.tools,
          {{"custom_instructions", o.instructions},
           {"authorized_imports", imports_text(o.imports)},
           {"code_block_opening_tag", o.code_open},
           {"code_block_closing_tag", o.code_close},
           {"tool_protocol", std::string{to_string(o.calls)}},
           {"task", task}},
          o.managed};
}

prompt_variables task_only(const agent_options& o, const std::string& task) {
  return {o.tools, {{"task", task}}, o.managed};
}

/// Rendering was tried when the agent was defined, and a task is only a text: the same template
/// cannot fail on another one, unless it computes with it. Then the run goes on without.
std::string rendered(const prompt_template& t, const prompt_variables& variables) {
  return t.render(variables).value_or("");
}

}  // namespace

std::string agent_definition::system_for(const std::string& task) const {
  return system_template.uses("task") ? rendered(system_template, system_texts(options, task))
                                      : system_prompt;
}

std::string agent_definition::forced_pre(const std::string& task) const {
  return rendered(final_answer_pre, task_only(options, task));
}

std::string agent_definition::forced_post(const std::string& task) const {
  return rendered(final_answer_post, task_only(options, task));
}

std::string agent_definition::task_for(const std::string& task) const {
  return rendered(managed_task, {.texts = {{"name", options.name}, {"task", task}}});
}

std::string agent_definition::report_of(const std::string& answer) const {
  return rendered(managed_report, {.texts = {{"name", options.name}, {"final_answer", answer}}});
}

result<std::shared_ptr<const agent_definition>> define_agent(agent_options options) {
  if (auto ok = check_plain(options); !ok)
    return fail(ok.error());
  if (auto ok = check_other_prompts(options.prompts); !ok)
    return fail(ok.error());
  std::vector<std::string> task_names{"task", "tools", "managed_agents"};
  auto system =
    prompt_template::parse("system_prompt", options.prompts.system_prompt, system_variables());
  auto pre = prompt_template::parse("final_answer.pre_messages", options.prompts.final_answer_pre,
                                    task_names);
  auto post = prompt_template::parse("final_answer.post_messages",
                                     options.prompts.final_answer_post, task_names);
  auto managed_task =
    prompt_template::parse("managed_agent.task", options.prompts.managed_task, {"name", "task"});
  auto managed_report = prompt_template::parse(
    "managed_agent.report", options.prompts.managed_report, {"name", "final_answer"});
  for (auto* parsed : {&system, &pre, &post, &managed_task, &managed_report})
    if (!*parsed)
      return fail(parsed->error());
  auto text = system->render(system_texts(options, "task"));
  if (!text)
    return fail(text.error());
  for (auto* parsed : {&pre, &post})
    if (auto tried = (*parsed)->render(task_only(options, "task")); !tried)
      return fail(tried.error());
  auto settings = acting_settings(options);
  if (!settings)
    return fail(settings.error());
  auto forced = answering_settings(options);
  return std::make_shared<const agent_definition>(agent_definition{
    std::move(options), *std::move(text), *std::move(system), *std::move(pre), *std::move(post),
    *std::move(managed_task), *std::move(managed_report), *std::move(settings), std::move(forced)});
}

result<void> validate(const agent_options& options) {
  auto defined = define_agent(options);
  return defined ? result<void>{} : fail(defined.error());
}

}  // namespace troupe

#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/python_name.hpp"
#include "runtime/agent/structured_reply.hpp"
#include "runtime/core/text.hpp"
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
  if (!(o.context.share > 0 && o.context.share <= 1))
    return invalid("context.share must be more than 0 and at most 1");
  if (o.context.keep_steps == 0)
    return invalid("context.keep_steps must be at least 1");
  return {};
}

result<void> check_choice(const agent_options& o) {
  if (o.choice != tool_choice::mode::automatic && o.choice != tool_choice::mode::required)
    return invalid("choice must be automatic or required: the agent acts by calling tools");
  return {};
}

result<void> check_structured(const agent_options& o) {
  if (o.structured && o.kind != agent_kind::code)
    return invalid("structured is for code agents: the other kind acts by calls, not by code");
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

result<void> check_prompts(const agent_options& o) {
  auto& p = o.prompts;
  struct {
    std::string_view name;
    const std::string& text;
    bool needed;
  } const all[] = {
    {"planning.initial_plan", p.initial_plan, o.planning_interval > 0},
    {"planning.update_plan_post_messages", p.update_plan_post, o.planning_interval > 0},
    {"context.summary", p.context_summary, true}};
  for (auto& one : all)
    if (one.needed && trim(one.text).empty())
      return invalid("the prompt " + std::string{one.name} + " is empty, and the agent needs it");
  return {};
}

result<void> check_checks(const agent_options& o) {
  for (auto& check : o.checks)
    if (check.name.empty() || !check.check)
      return invalid("a final check needs a name and a function");
  return {};
}

result<void> check_plain(const agent_options& o) {
  for (auto* check : {check_numbers, check_choice, check_structured, check_tags, check_tools,
                      check_prompts, check_checks})
    if (auto ok = check(o); !ok)
      return ok;
  return {};
}

bool speaks_json(const agent_options& o) {
  return o.kind == agent_kind::code && o.structured;
}

bool speaks_natively(const agent_options& o) {
  return o.kind == agent_kind::tool_calling && o.calls == call_protocol::native;
}

/// What ends a reply that goes on as if it had been answered. Natively nothing does: calls come
/// after the text, and would be cut with it; as would JSON.
std::vector<std::string> stops_of(const agent_options& o) {
  if (speaks_natively(o) || speaks_json(o))
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
  if (speaks_json(o))
    settings.output = thought_and_code();
  if (settings.stop.size() > max_stop_sequences)
    return invalid("stop: " + std::to_string(settings.stop.size())
                   + " sequences with the agent's own, " + "at most "
                   + std::to_string(max_stop_sequences) + " are possible");
  return std::make_shared<const model_settings>(std::move(settings));
}

/// Servers refuse a history with calls in it beside a request that names no tools.
std::shared_ptr<const model_settings> answering_settings(const agent_options& o,
                                                         const std::optional<answer_shape>& shape) {
  auto settings = o.model;
  if (shape)
    settings.output = shape->output();
  settings.tools.clear();
  if (speaks_natively(o)) {
    settings.tools = plain_tools(o);
    settings.choice.how = tool_choice::mode::none;
  }
  return std::make_shared<const model_settings>(std::move(settings));
}

/// Of a plan nothing but its end may cut.
std::shared_ptr<const model_settings> planning_settings(const model_settings& answering) {
  auto settings = answering;
  settings.output.reset();
  settings.stop = {std::string{end_of_plan}};
  return std::make_shared<const model_settings>(std::move(settings));
}

/// The same without an output schema; the very same where there is none.
std::shared_ptr<const model_settings> plainly(const std::shared_ptr<const model_settings>& from) {
  if (!from->output)
    return from;
  auto settings = *from;
  settings.output.reset();
  return std::make_shared<const model_settings>(std::move(settings));
}

prompt_variables system_texts(const agent_options& o, const std::string& schema,
                              const std::string& task) {
  return {o.tools,
          {{"custom_instructions", o.instructions},
           {"authorized_imports", imports_text(o.imports)},
           {"code_block_opening_tag", o.code_open},
           {"code_block_closing_tag", o.code_close},
           {"tool_protocol", std::string{to_string(o.calls)}},
           {"answer_schema", schema},
           {"task", task}},
          o.managed};
}

prompt_variables task_only(const agent_options& o, const std::string& task) {
  return {o.tools, {{"task", task}}, o.managed};
}

prompt_variables plan_texts(const agent_options& o, const std::string& task,
                            const std::string& remaining_steps) {
  return {o.tools, {{"task", task}, {"remaining_steps", remaining_steps}}, o.managed};
}

std::string schema_text(const std::optional<answer_shape>& shape) {
  return shape ? shape->text() : "";
}

/// smolagents' own prompt files have this one name in single braces, which its engine leaves alone.
std::string with_single_braces(std::string text, const std::string& remaining_steps) {
  constexpr std::string_view name = "{remaining_steps}";
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    text.replace(at, name.size(), remaining_steps);
  return text;
}

/// The answer's form, which the tools that end the run are told too. None: any will do.
result<std::optional<answer_shape>> shape_of(agent_options& o) {
  if (o.answer_schema.is_null())
    return std::optional<answer_shape>{};
  auto made = answer_shape::make(o.answer_schema);
  if (!made)
    return fail(made.error());
  for (auto& tool : o.tools)
    if (tool.ends_run)
      made->tell(tool);
  return std::optional{*std::move(made)};
}

/// The system prompt's template, then those of the forced answer, the plans and the summary.
result<std::vector<prompt_template>> templates_of(const prompt_set& prompts) {
  const std::vector<std::string> usual{"task", "tools", "managed_agents"};
  auto with_steps = usual;
  with_steps.emplace_back("remaining_steps");
  struct {
    const char* name;
    const std::string& text;
    std::vector<std::string> variables;
  } const all[] = {
    {"system_prompt", prompts.system_prompt, system_variables()},
    {"final_answer.pre_messages", prompts.final_answer_pre, usual},
    {"final_answer.post_messages", prompts.final_answer_post, usual},
    {"planning.initial_plan", prompts.initial_plan, usual},
    {"planning.update_plan_pre_messages", prompts.update_plan_pre, usual},
    {"planning.update_plan_post_messages", prompts.update_plan_post, with_steps},
    {"context.summary", prompts.context_summary, usual},
  };
  std::vector<prompt_template> out;
  for (auto& one : all) {
    auto parsed = prompt_template::parse(one.name, one.text, one.variables);
    if (!parsed)
      return fail(parsed.error());
    out.push_back(*std::move(parsed));
  }
  return out;
}

/// Rendering was tried when the agent was defined, and a task is only a text: the same template
/// cannot fail on another one, unless it computes with it. Then the run goes on without.
std::string rendered(const prompt_template& t, const prompt_variables& variables) {
  return t.render(variables).value_or("");
}

}  // namespace

std::string agent_definition::system_for(const std::string& task) const {
  return system_template.uses("task")
           ? rendered(system_template, system_texts(options, schema_text(shape), task))
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

std::string agent_definition::first_plan(const std::string& task) const {
  return rendered(initial_plan, task_only(options, task));
}

std::string agent_definition::plan_pre(const std::string& task) const {
  return rendered(update_plan_pre, task_only(options, task));
}

std::string agent_definition::plan_post(const std::string& task,
                                        std::uint32_t remaining_steps) const {
  auto steps = std::to_string(remaining_steps);
  return with_single_braces(rendered(update_plan_post, plan_texts(options, task, steps)), steps);
}

std::string agent_definition::summary_prompt(const std::string& task) const {
  return rendered(context_summary, task_only(options, task));
}

result<std::shared_ptr<const agent_definition>> define_agent(agent_options options) {
  if (auto ok = check_plain(options); !ok)
    return fail(ok.error());
  auto shape = shape_of(options);
  if (!shape)
    return fail(shape.error());
  auto templates = templates_of(options.prompts);
  if (!templates)
    return fail(templates.error());
  auto managed_task =
    prompt_template::parse("managed_agent.task", options.prompts.managed_task, {"name", "task"});
  auto managed_report = prompt_template::parse(
    "managed_agent.report", options.prompts.managed_report, {"name", "final_answer"});
  for (auto* parsed : {&managed_task, &managed_report})
    if (!*parsed)
      return fail(parsed->error());
  auto& t = *templates;
  auto system = t[0].render(system_texts(options, schema_text(*shape), "task"));
  if (!system)
    return fail(system.error());
  for (std::size_t i = 1; i < t.size(); ++i)
    if (auto tried = t[i].render(plan_texts(options, "task", "1")); !tried)
      return fail(tried.error());
  auto settings = acting_settings(options);
  if (!settings)
    return fail(settings.error());
  auto forced = answering_settings(options, *shape);
  auto planning = planning_settings(*forced);
  return std::make_shared<const agent_definition>(
    agent_definition{.options = std::move(options),
                     .system_prompt = *std::move(system),
                     .system_template = t[0],
                     .final_answer_pre = t[1],
                     .final_answer_post = t[2],
                     .managed_task = *std::move(managed_task),
                     .managed_report = *std::move(managed_report),
                     .settings = *settings,
                     .forced_settings = forced,
                     .plain_settings = plainly(*settings),
                     .plain_forced_settings = plainly(forced),
                     .plan_settings = std::move(planning),
                     .initial_plan = t[3],
                     .update_plan_pre = t[4],
                     .update_plan_post = t[5],
                     .context_summary = t[6],
                     .shape = *std::move(shape)});
}

result<void> validate(const agent_options& options) {
  auto defined = define_agent(options);
  return defined ? result<void>{} : fail(defined.error());
}

}  // namespace troupe

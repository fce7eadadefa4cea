#include "runtime/host/public_specs.hpp"

#include "runtime/host/assemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {
namespace {

void give(std::vector<option_input>& out, const std::string& name, std::vector<std::string> words,
          const std::string& from) {
  out.push_back({name, std::move(words), from + ": " + name});
}

void give_text(std::vector<option_input>& out, const std::string& name, const std::string& word,
               const std::string& from) {
  if (!word.empty())
    give(out, name, {word}, from);
}

/// What an agent may have otherwise than its runtime.
bool is_of_agents(std::string_view name) {
  const auto* row = find_option(name);
  return row != nullptr && (row->is_of_agents() || row->is_of_models());
}

tool tool_of(native_tool t) {
  tool out;
  out.spec.name = std::move(t.name);
  out.spec.description = std::move(t.description);
  out.spec.parameters = std::move(t.parameters);
  out.spec.idempotent = t.idempotent;
  out.spec.ends_run = t.ends_run;
  if (t.call)
    out.call = [call = std::move(t.call)](const json& arguments, const tool_context& c) {
      return call(arguments, {c.run.value, c.call.value, c.deadline});
    };
  return out;
}

result<hook_point> point_of(const hook& h, const std::string& name) {
  for (auto at = hook_point::before_step; at <= hook_point::run_ended;
       at = static_cast<hook_point>(static_cast<int>(at) + 1))
    if (to_string(at) == name)
      return at;
  return fail(errc::invalid_argument,
              "hook '" + h.name + "': there is no point '" + name + "'; they are before_step, "
                + "before_model, after_model, before_tool, after_tool, before_code, after_code, "
                  "after_step and run_ended");
}

hook_verdict verdict_of(hook_answer a) {
  return {std::move(a.changed), a.vetoed, std::move(a.reason)};
}

hook_question question_of(const hook_event& e) {
  return {e.run.value, e.agent, std::string{to_string(e.at)}, e.what};
}

result<run_hook> hook_of(const hook& given) {
  run_hook out;
  out.name = given.name;
  out.must = given.must;
  for (auto& name : given.points) {
    auto at = point_of(given, name);
    if (!at)
      return fail(at.error());
    out.points.push_back(*at);
  }
  if (given.ask_later)
    out.call = [later = given.ask_later](const hook_event& e, const hook_reply& reply) {
      later(question_of(e), [reply](hook_answer a) { reply(verdict_of(std::move(a))); });
    };
  else if (given.ask)
    out.call = [ask = given.ask](const hook_event& e, const hook_reply& reply) {
      reply(verdict_of(ask(question_of(e))));
    };
  return out;
}

}  // namespace

bool is_of_models(std::string_view name) {
  const auto* row = find_option(name);
  return row != nullptr && row->is_of_models();
}

std::vector<option_input> inputs_of(const runtime_options& o) {
  const std::string from = "runtime_options";
  std::vector<option_input> out;
  for (const auto& [name, word] : o.options)
    give(out, name, {word}, from);
  give_text(out, "model", o.model, from);
  give_text(out, "base_url", o.base_url, from);
  give_text(out, "api_key_env", o.api_key_env, from);
  give_text(out, "executor", o.executor, from);
  give_text(out, "profile", o.profile, from);
  give_text(out, "out", o.out, from);
  if (o.max_concurrency)
    give(out, "max_concurrency", {std::to_string(*o.max_concurrency)}, from);
  return out;
}

result<std::vector<option_input>> inputs_of(const agent_spec& spec) {
  const auto from = "agent_spec '" + spec.name + "'";
  std::vector<option_input> out;
  for (const auto& [name, word] : spec.options) {
    if (find_option(name) != nullptr && !is_of_agents(name))
      return fail(
        errc::invalid_argument,
        fmt::format("{}: {} is the same for all agents of a runtime; give it in runtime_options",
                    from, name));
    give(out, name, {word}, from);
  }
  give_text(out, "model", spec.model, from);
  give_text(out, "agent", spec.kind, from);
  give_text(out, "instructions", spec.instructions, from);
  if (!spec.builtin_tools.empty())
    give(out, "tools", spec.builtin_tools, from);
  if (!spec.imports.empty())
    give(out, "imports", spec.imports, from);
  if (spec.max_steps)
    give(out, "max_steps", {std::to_string(*spec.max_steps)}, from);
  if (spec.run_time.count() != 0)
    give(out, "run_time", {std::to_string(spec.run_time.count()) + "ms"}, from);
  return out;
}

result<std::shared_ptr<const tool_set>> all_tools(const settings& s, std::vector<native_tool> own) {
  auto named = tools_from(s);
  if (!named)
    return fail(named.error());
  auto all = std::make_shared<tool_set>(**named);
  for (auto& t : own)
    if (auto added = all->add(tool_of(std::move(t))); !added)
      return fail(added.error());
  return std::shared_ptr<const tool_set>{std::move(all)};
}

std::vector<final_check> checks_of(std::vector<answer_check> checks) {
  std::vector<final_check> out;
  for (auto& c : checks) {
    final_check made{std::move(c.name), {}};
    if (c.check)
      made.check = [check = std::move(c.check)](const value& v) {
        return check(to_plain(v.tagged), v.text);
      };
    out.push_back(std::move(made));
  }
  return out;
}

result<std::shared_ptr<const std::vector<run_hook>>> hooks_of(const std::vector<hook>& given) {
  std::vector<run_hook> out;
  for (auto& one : given) {
    auto made = hook_of(one);
    if (!made)
      return fail(made.error());
    out.push_back(*std::move(made));
  }
  if (auto fine = validate(out); !fine)
    return fail(fine.error());
  return std::make_shared<const std::vector<run_hook>>(std::move(out));
}

run_outcome outcome_of(const run_result& r) {
  run_outcome out;
  out.end = r.end;
  out.answer = r.answer_value;
  out.text = r.answer;
  out.error = r.error;
  out.turns = r.turns;
  out.tool_calls = r.tool_calls;
  out.model_attempts = r.model_attempts;
  out.input_tokens = r.tokens.input;
  out.output_tokens = r.tokens.output;
  out.untold_replies = r.tokens.untold;
  out.wall = r.wall;
  out.model = r.model;
  return out;
}

}  // namespace troupe

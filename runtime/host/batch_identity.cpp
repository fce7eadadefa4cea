#include "runtime/host/batch_identity.hpp"

#include "runtime/agent/agent_options.hpp"
#include "runtime/core/digest.hpp"

#include <array>

namespace troupe {
namespace {

/// The options that decide on results.
constexpr std::array measured{"model",
                              "temperature",
                              "max_tokens",
                              "seed",
                              "reasoning_effort",
                              "extra_body",
                              "agent",
                              "tool_calls",
                              "tool_choice",
                              "instructions",
                              "tools",
                              "max_steps",
                              "profile",
                              "imports",
                              "token_budget",
                              "call_budget",
                              "cost_budget",
                              "scorer",
                              "tolerance",
                              "ignore_case",
                              "prompts",
                              "planning",
                              "structured",
                              "answer_schema",
                              "answer_retries",
                              "context_window",
                              "context_share",
                              "keep_steps",
                              "observation_tokens"};

/// What it says is in the digest.
bool names_a_file(std::string_view option) {
  return option == "prompts" || option == "answer_schema";
}

json told(const agent_definition& agent) {
  const auto& o = agent.options;
  const auto& p = o.prompts;
  return {o.name,
          o.description,
          o.instructions,
          o.answer_schema.dump(),
          p.system_prompt,
          p.final_answer_pre,
          p.final_answer_post,
          p.initial_plan,
          p.update_plan_pre,
          p.update_plan_post,
          p.managed_task,
          p.managed_report,
          p.context_summary};
}

json told(const std::vector<team_member>& team) {
  auto out = json::array();
  for (const auto& member : team) {
    auto all = to_json(member.options);
    auto decisive = json::object();
    for (const auto* name : measured)
      if (!names_a_file(name))
        decisive[name] = all.value(name, json::object()).value("value", json{});
    out.push_back({told(*member.agent), std::move(decisive), told(member.team)});
  }
  return out;
}

}  // namespace

result<void> check_same_options(const json& before, const json& now, const std::string& path,
                                bool by_contents) {
  for (const auto* name : measured) {
    if (by_contents && names_a_file(name))
      continue;
    auto of = [&](const json& all) {
      return all.value(name, json::object()).value("value", json{});
    };
    // A version without the option had but one way.
    if (before.contains(name) && of(before) != of(now))
      return fail(errc::invalid_argument, "'" + path + "' was begun with another --"
                                            + std::string{name} + " (" + dump_json(of(before))
                                            + ", now " + dump_json(of(now))
                                            + "); give another --out, or that value");
  }
  return {};
}

std::string digest_of_agents(const agent_definition& agent, const std::vector<team_member>& team) {
  return sha256_hex(dump_json({told(agent), told(team)}));
}

result<void> check_same_agent(const json& record, const std::string& digest,
                              const std::string& path) {
  auto before = string_or(record, agent_digest_key);
  if (before.empty() || before == digest)  // an earlier version has not looked
    return {};
  return fail(
    errc::invalid_argument,
    "'" + path
      + "' was begun with an agent that was told something else (prompts, answer schema, "
        "or the file of one of its team has changed); give another --out, or put it back");
}

}  // namespace troupe

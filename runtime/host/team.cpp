#include "runtime/host/team.hpp"

#include "runtime/agent/managed_agent.hpp"
#include "runtime/host/models.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

bool is_own(std::string_view option) {
  const auto* row = find_option(option);
  return row != nullptr && !option.starts_with("approve")
         && (row->is_of_agents() || row->is_of_models());
}

/// The manager's settings with the child's own in their place.
result<settings> settings_of(const settings& manager,
                             const std::shared_ptr<const agent_file>& file) {
  for (auto& o : file->options)
    if (!is_own(o.name))
      return fail(errc::invalid_argument,
                  o.where + ": " + o.name
                    + ": is the same for a whole team; give it in the file of its first agent");
  auto own = resolve(command::eval, file->options, {}, {});
  if (!own)
    return own;
  auto out = manager;
  out.agent = own->agent;
  out.agent.file = file;
  out.explained = own->explained;
  if (auto model = with_own_model(out.model, file->options); !model)
    return fail(model.error());
  else
    out.model = *std::move(model);
  return out;
}

result<team_member> read_member(const settings& manager, const agent_child& child,
                                const env_lookup& env) {
  auto s = settings_of(manager, child.agent);
  if (!s)
    return fail(s.error());
  auto below = read_team(*s, env);
  auto tools = tools_from(*s);
  auto profile = profile_from(*s);
  if (!below || !tools || !profile)
    return fail(!below ? below.error() : !tools ? tools.error() : profile.error());
  auto defined = agent_from(*s, **tools, profile->imports, env, managed_tools(*below));
  if (!defined)
    return fail(defined.error().code, child.agent->path + ": " + defined.error().detail);
  return team_member{*std::move(s), *std::move(profile), *std::move(tools), *std::move(defined),
                     *std::move(below)};
}

}  // namespace

result<std::vector<team_member>> read_team(const settings& manager, const env_lookup& env) {
  std::vector<team_member> out;
  if (!manager.agent.file)
    return out;
  for (auto& child : manager.agent.file->children) {
    auto made = read_member(manager, child, env);
    if (!made)
      return fail(made.error());
    out.push_back(*std::move(made));
  }
  return out;
}

result<void> find_models(std::vector<team_member>& team, const env_lookup& env) {
  for (auto& member : team) {
    auto found = model_from(member.options, env);
    if (!found)
      return fail(found.error().code,
                  member.options.agent.file->path + ": " + found.error().detail);
    member.model = *std::move(found);
    if (auto below = find_models(member.team, env); !below)
      return below;
  }
  return {};
}

std::vector<tool_spec> managed_tools(const std::vector<team_member>& team) {
  std::vector<tool_spec> out;
  for (auto& member : team)
    out.push_back(managed_agent_tool(member.agent->options));
  return out;
}

bool writes_code(const std::vector<team_member>& team) {
  return std::ranges::any_of(team, [](auto& member) {
    return kind_from(member.options) == agent_kind::code || writes_code(member.team);
  });
}

std::uint32_t levels_below(const agent_file* file) {
  std::uint32_t out = 0;
  if (file != nullptr)
    for (auto& child : file->children)
      out = std::max(out, levels_below(child.agent.get()) + 1);
  return out;
}

result<sandbox_spec> sandbox_of_team(sandbox_spec own, const agent_options& manager,
                                     const std::vector<managed_agent>& team) {
  if (!manager.share_sandbox)
    return own;
  auto bad = [](const std::string& why) {
    return fail(errc::invalid_argument, "share_sandbox: " + why);
  };
  if (manager.kind == agent_kind::code)
    return bad(
      "an agent that writes code is itself at work in its sandbox while it waits for those "
      "that it calls; make it one that calls tools (agent: tool)");
  const agent_context* first = nullptr;
  for (auto& member : team) {
    auto& c = *member.agent;
    if (c.agent->options.kind != agent_kind::code)
      continue;
    if (first != nullptr && c.sandbox.imports != first->sandbox.imports)
      return bad("'" + c.agent->options.name + "' and '" + first->agent->options.name
                 + "' may not import the same; give them the same imports");
    first = first != nullptr ? first : &c;
    own.imports = c.sandbox.imports;
    for (auto& tool : c.sandbox.tools)
      if (auto same = std::ranges::find(own.tools, tool.name, &tool_spec::name);
          same == own.tools.end())
        own.tools.push_back(tool);
      else if (same->parameters != tool.parameters)
        return bad("'" + tool.name + "' is not the same tool for all of its agents");
  }
  if (first == nullptr)
    return bad("none of its agents writes code");
  return own;
}

result<std::vector<managed_agent>> start_team(engine& host, const std::vector<team_member>& team) {
  std::vector<managed_agent> out;
  for (auto& member : team) {
    auto below = start_team(host, member.team);
    if (!below)
      return below;
    auto model = host.add_model(member.model);
    if (!model)
      return fail(model.error());
    job_options job;
    job.run_budget = run_budget_from(member.options);
    job.model = *model;
    auto box =
      sandbox_of_team(sandbox_from(member.profile, *member.tools), member.agent->options, *below);
    if (!box)
      return fail(box.error().code, member.options.agent.file->path + ": " + box.error().detail);
    auto made = make_managed_agent(
      host.make_context(member.agent, member.tools, *std::move(box), job, *std::move(below)));
    if (!made)
      return fail(made.error());
    out.push_back(*std::move(made));
  }
  return out;
}

}  // namespace troupe

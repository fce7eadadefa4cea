#include "actors/child_runs.hpp"

#include "actors/caf_glue.hpp"
#include "runtime/agent/managed_agent.hpp"

#include <utility>

namespace troupe {
namespace {

constexpr std::string_view child_prefix = "run-";

run_finished nothing_done(run_id run) {
  run_finished out;
  out.run = run;
  return out;
}

}  // namespace

run_id run_of(const child_ended& x) {
  return run_id{std::stoull(x.name.substr(child_prefix.size()))};
}

result<managed_agent> make_managed_agent(std::shared_ptr<const agent_context> agent) {
  auto spec = managed_agent_tool(agent->agent->options);
  auto fitting = std::make_shared<tool_set>();
  auto added = fitting->add(
    {spec, [](const json& arguments, const tool_context&) { return result<json>{arguments}; }});
  if (!added)
    return fail(added.error());
  return managed_agent{std::move(spec), std::move(fitting), std::move(agent)};
}

child_runs::child_runs(caf::event_based_actor* self, std::shared_ptr<const agent_context> manager)
  : self_{self}, manager_{std::move(manager)} {}

const managed_agent* child_runs::find(std::string_view name) const {
  for (auto& member : manager_->team)
    if (member.tool.name == name)
      return &member;
  return nullptr;
}

void child_runs::begin(const managed_agent& who, agent_run own, std::string task, millis time_left,
                       done_fn done) {
  auto run = own.run;
  child_spec spec;
  spec.name = std::string{child_prefix} + to_string(run);
  spec.restart = restart_type::temporary;
  spec.start = [context = who.agent, own = std::move(own)](caf::actor_system& sys) {
    return spawn_agent(sys, context, own);
  };
  open_[run] = {&who, nullptr, std::nullopt, std::move(done)};
  auto agents = manager_->agents ? manager_->agents->get() : caf::actor{};
  if (!agents) {
    over(run, fail(errc::unavailable, "no agent can be started"), nothing_done(run));
    return;
  }
  self_->request(agents, caf::infinite, start_child{std::move(spec), caf::actor{self_}})
    .then([this, run, task = std::move(task), time_left](
            child_started& x) mutable { on_started(run, x.child, std::move(task), time_left); },
          [this, run](const caf::error& e) {
            over(run,
                 fail(errc::unavailable, "no agent can be started: " + glue::from_caf(e).detail),
                 nothing_done(run));
          });
}

void child_runs::on_started(run_id run, const caf::actor& agent, std::string task,
                            millis time_left) {
  auto it = open_.find(run);
  if (it == open_.end())
    return;
  it->second.agent = agent;
  glue::post(agent, run_start{{.task = std::move(task), .time_left = time_left}});
  if (it->second.cancelled)
    glue::post(agent, run_cancel{*it->second.cancelled});
}

void child_runs::cancel(const std::string& reason) {
  for (auto& [run, r] : open_) {
    if (r.agent)
      glue::post(r.agent, run_cancel{reason});
    else
      r.cancelled = reason;
  }
}

void child_runs::on_finished(const run_finished& x) {
  auto it = open_.find(x.run);
  if (it != open_.end())
    over(x.run, managed_outcome(*it->second.who->agent->agent, x.end), x);
}

/// Its end was told before, unless it crashed.
void child_runs::on_ended(const child_ended& x) {
  auto run = run_of(x);
  auto it = open_.find(run);
  if (it == open_.end())
    return;
  auto& who = *it->second.who;
  glue::post(who.agent->model->get(), model_cancel{run});
  over(run,
       fail(errc::unavailable, "the agent '" + who.tool.name + "' crashed"
                                 + (x.how.reason.empty() ? std::string{} : ": " + x.how.reason)),
       nothing_done(run));
}

void child_runs::over(run_id run, const result<json>& outcome, const run_finished& end) {
  auto it = open_.find(run);
  if (it == open_.end())
    return;
  auto done = std::move(it->second.done);
  open_.erase(it);
  done(outcome, end);
}

}  // namespace troupe

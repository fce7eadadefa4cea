#include "actors/run_calls.hpp"

#include "actors/ask_again.hpp"
#include "runtime/agent/managed_agent.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

json call_shown(call_id call, const std::string& tool, const json& arguments) {
  return {{"call", call.value}, {"tool", tool}, {"arguments", arguments}};
}

tool_replied refusal(call_id call, const std::string& why) {
  return {call, fail(errc::denied, to_utf8(why)), {}};
}

}  // namespace

void keep_call(run_log::collector& kept, call_id id, const std::string& tool,
               const json& arguments) {
  kept.add("tool_requested", [&] { return call_shown(id, tool, arguments); });
}

run_calls::run_calls(run_core& core, const snippet_runs& code)
  : core_{core}, code_{code}, next_host_{core.run.run.value} {  // not all begin with the same one
  if (!core_.context->team.empty())
    children_ = std::make_unique<child_runs>(core_.self, core_.context);
}

void run_calls::begin(call_tool x) {
  auto shown =
    core_.hooked(hook_point::before_tool) ? call_shown(x.call, x.tool, x.arguments) : json{};
  core_.by_leave(hook_point::before_tool, std::move(shown),
                 [this, x = std::move(x)](const hook_verdict& v) mutable {
                   if (core_.machine.finished())
                     return;
                   if (v.vetoed) {
                     settle({}, refusal(x.call, v.reason), x.tool);
                     return;
                   }
                   if (!v.changed.is_null())
                     x.arguments = v.changed["arguments"];
                   call(std::move(x), 0);
                 });
}

void run_calls::call(call_tool x, std::uint32_t tries) {
  if (core_.machine.finished())
    return;
  if (auto* who = member(x.tool)) {
    ++core_.totals.tool_calls;
    start_child(*who, x.call, x.arguments, {});
    return;
  }
  auto host = host_for(x.tool);
  if (!host && tries < ask_again_limit) {  // being restarted: nothing has been carried out yet
    ask_again(core_.self, *core_.context->clock,
              [this, x = std::move(x), tries] { call(x, tries + 1); });
    return;
  }
  ++core_.totals.tool_calls;
  ask_host(host, x.call, x.tool, std::move(x.arguments),
           [this, id = x.call, tool = x.tool](result<json> outcome) {
             settle({}, {id, std::move(outcome), {}}, tool);
           });
}

void run_calls::on_wanted(tool_wanted x) {
  if (core_.machine.finished())
    return;
  ++core_.totals.tool_calls;
  auto kept = core_.log.collect();
  keep_call(kept, x.call.id, x.call.tool, x.call.arguments);
  core_.log.commit(kept, [this, x = std::move(x)]() mutable {
    auto& c = x.call;
    auto shown =
      core_.hooked(hook_point::before_tool) ? call_shown(c.id, c.tool, c.arguments) : json{};
    core_.by_leave(hook_point::before_tool, std::move(shown),
                   [this, x = std::move(x)](const hook_verdict& v) mutable {
                     if (v.vetoed) {
                       settle(x.sandbox, refusal(x.call.id, v.reason), x.call.tool);
                       return;
                     }
                     if (!v.changed.is_null())
                       x.call.arguments = v.changed["arguments"];
                     call_for_code(std::move(x));
                   });
  });
}

void run_calls::call_for_code(tool_wanted x) {
  auto id = x.call.id;
  if (auto* who = member(x.call.tool)) {
    start_child(*who, id, x.call.arguments, x.sandbox);
    return;
  }
  ask_host(host_for(x.call.tool), id, x.call.tool, std::move(x.call.arguments),
           [this, id, box = x.sandbox, tool = x.call.tool](result<json> outcome) {
             settle(box, {id, std::move(outcome), {}}, tool);
           });
}

// --- managed agents
// ---------------------------------------------------------------------------------------

const managed_agent* run_calls::member(const std::string& tool) const {
  return children_ ? children_->find(tool) : nullptr;
}

/// Its outcome is an event of this run's loop, which takes what it has cost. With `box`, the code
/// in there gets it too.
void run_calls::start_child(const managed_agent& who, call_id call, const json& arguments,
                            caf::actor box) {
  auto fitted = who.arguments->call(who.tool.name, arguments, {core_.run.run, call});
  if (!fitted) {
    settle(box, {call, fail(fitted.error()), {}}, who.tool.name);
    return;
  }
  auto run = core_.context->numbers->take();
  auto kept = core_.log.collect();
  kept.add("child_started", [&] {
    return json{{"call", call.value}, {"agent", who.tool.name}, {"run", run.value}};
  });
  core_.log.commit(kept, [this, &who, run, call, box = std::move(box),
                          task = managed_task(*who.agent->agent, *fitted)]() mutable {
    // Nobody waits for it any more when the code that called has ended meanwhile.
    if (core_.machine.finished() || (box && !code_.any()))
      return;
    children_->begin(
      who, child_run(run, call), std::move(task), time_left(),
      [this, &who, call, box](result<json> outcome, const run_finished& end) {
        on_child_end(box, {call, std::move(outcome), usage_of(end.end)}, who.tool.name, end);
      });
  });
}

agent_run run_calls::child_run(run_id run, call_id call) const {
  auto& mine = core_.run;
  agent_run own{run, mine.sample, {}, caf::actor{core_.self}, mine.draw, mine.viewer};
  own.manager = std::make_shared<const managed_by>(
    managed_by{mine.run, call, mine.manager ? mine.manager->depth + 1 : 1, core_.payer, core_.job(),
               core_.context->agent->options.share_sandbox});
  return own;
}

/// Of a run with a deadline at least 1 ms, 0 means none.
millis run_calls::time_left() const {
  auto until = core_.machine.deadline();
  if (until == never)
    return millis{0};
  return std::max(std::chrono::duration_cast<millis>(until - core_.now()), millis{1});
}

void run_calls::on_child_end(const caf::actor& box, tool_replied reply, const std::string& tool,
                             const run_finished& end) {
  core_.totals.sandboxes += end.sandboxes;
  core_.totals.tool_calls += end.tool_calls;
  core_.totals.answered_by(end.model);
  if (!ending_) {
    settle(box, std::move(reply), tool);
    return;
  }
  ending_->how += *reply.used;  // the loop has ended: what it cost is told with its end
  if (!children_->any()) {
    auto last = std::move(ending_);
    last->then(std::move(last->how));
  }
}

void run_calls::on_finished(const run_finished& x) {
  if (children_)
    children_->on_finished(x);
}

void run_calls::on_ended(const child_ended& x) {
  if (children_)
    children_->on_ended(x);
}

void run_calls::cancel_children(const std::string& reason) {
  if (children_)
    children_->cancel(reason);
}

void run_calls::end_children(finish how, std::function<void(finish)> then) {
  if (!children_ || !children_->any()) {
    then(std::move(how));
    return;
  }
  ending_ = std::make_unique<last_words>(last_words{std::move(how), std::move(then)});
  children_->cancel("the agent that called for it has ended");
}

// --- answers
// ----------------------------------------------------------------------------------------------

/// A call has ended: the loop's own, or one of the code's in `box`.
void run_calls::settle(const caf::actor& box, tool_replied reply, const std::string& tool) {
  core_.tell_hooks(hook_point::after_tool, [&] {
    json what{{"call", reply.call.value}, {"tool", tool}};
    if (reply.outcome)
      what["value"] = *reply.outcome;
    else
      what["error"] = to_utf8(reply.outcome.error().detail);
    return what;
  });
  if (!box) {
    core_.apply(std::move(reply));
    return;
  }
  tool_answer answer{reply.call, reply.outcome};
  auto tell = [box, answer = std::move(answer)] { glue::post(box, answer); };
  if (reply.used) {  // it counts in the loop, which keeps it
    core_.apply(std::move(reply), std::move(tell));
    return;
  }
  auto kept = core_.log.collect();
  kept.add("tool_replied", [&] { return to_json(reply); });
  core_.log.commit(kept, std::move(tell));
}

caf::actor run_calls::host_for(const std::string& tool) {
  auto& shared = *core_.context;
  if (auto served = shared.served.find(tool); served != shared.served.end())
    return served->second->get();
  auto& all = shared.tool_hosts;
  return all.empty() ? caf::actor{} : all[next_host_++ % all.size()]->get();
}

template <class Then>
void run_calls::ask_host(const caf::actor& host, call_id id, const std::string& tool,
                         json arguments, const Then& then) {
  tool_context how{core_.run.run, id, core_.machine.deadline()};
  core_.self
    ->request(host, caf::infinite, tool_call{core_.context->tools, tool, std::move(arguments), how})
    .then([then](tool_answer& answer) { then(std::move(answer.value)); },
          [then](const caf::error& e) {
            then(fail(errc::unavailable, "the tool's host is gone, and whether the call was "
                                         "carried out is not known: "
                                           + glue::from_caf(e).detail));
          });
}

}  // namespace troupe

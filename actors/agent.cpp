#include "actors/agent.hpp"

#include "actors/caf_glue.hpp"
#include "actors/model_turns.hpp"
#include "actors/run_calls.hpp"
#include "actors/run_core.hpp"
#include "actors/shared_box.hpp"
#include "actors/snippet_runs.hpp"
#include "runtime/core/overloaded.hpp"

#include <caf/stateful_actor.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace troupe {
namespace {

json record_json(const egress_record& r) {
  return {{"host", r.host},
          {"port", r.port},
          {"address", r.address},
          {"verdict", to_string(r.verdict)},
          {"reason", r.reason},
          {"bytes_up", r.bytes_up},
          {"bytes_down", r.bytes_down},
          {"seconds", static_cast<double>(r.duration.count()) / 1e6}};
}

json ended_json(const finish& x) {
  json payload{{"end", to_string(x.end)}, {"turns", x.turns}};
  if (x.answer)
    payload["answer"] = x.answer->text;
  if (!x.error.empty())
    payload["error"] = x.error;
  return payload;
}

/// Those commands of which a trace tells.
void keep_command(run_log::collector& kept, const agent_command& c) {
  std::visit(overloaded{
               [&](const ask_model& x) {
                 kept.add("model_requested", [&] {
                   return json{{"turn", x.request.turn}, {"bytes", x.request.messages.size}};
                 });
               },
               [&](const note& x) { kept.add(x.kind, [&] { return x.payload; }); },
               [&](const call_tool& x) { keep_call(kept, x.call, x.tool, x.arguments); },
               [&](const finish& x) { kept.add("run_ended", [&] { return ended_json(x); }); },
               [](const auto&) {},
             },
             c);
}

/// Drives the loop: events in, what they say made durable, commands out to the parts.
class agent_state : public run_core {
public:
  agent_state(caf::event_based_actor* actor, std::shared_ptr<const agent_context> shared,
              agent_run own)
    : run_core{actor, std::move(shared), std::move(own)}, turns_{*this}, snippets_{*this},
      calls_{*this, snippets_} {
    if (context->agent->options.share_sandbox)
      shared_ = std::make_unique<shared_box>(*this, snippets_);
  }

  virtual ~agent_state() {
    if (deadline_timer_ != 0)
      context->clock->cancel(deadline_timer_);
  }

  caf::behavior make_behavior() {
    glue::house_rules(self);
    return {
      [this](run_start& x) { on_start(std::move(x.input)); },
      [this](run_cancel& x) { apply(cancel_requested{std::move(x.reason)}); },
      [this](const stop&) { apply(cancel_requested{"troupe is stopping"}); },
      [this](const run_deadline&) { apply(deadline_passed{}); },
      [this](const run_gate& x) { turns_.on_gate(x.how); },
      [this](const model_seen& x) { turns_.on_pieces(x.pieces); },
      [this](tool_wanted& x) { on_wanted(std::move(x)); },
      [this](const run_finished& x) { on_child_finished(x); },
      [this](const child_ended& x) { on_child_gone(x); },
      [this](lent_run& x) { return on_lent_run(std::move(x)); },
      [this](const lent_end& x) {
        if (shared_)
          shared_->on_end(x.run);
      },
      [this](const output_seen& x) {
        if (shared_)
          shared_->on_output(x);
        else
          log.show("output", json{{"text", x.bytes}});
      },
      [this](const connection_seen& x) {
        log.keep("connection", [&] { return record_json(x.record); });
      },
    };
  }

  static inline const char* name = "agent";

private:
  void on_start(run_started input) {
    started_ = now();
    payer = run.manager ? run.manager->payer : context->budget;
    if (run.manager)
      glue::watch(self, run.owner, [](const caf::error&) {
        return run_cancel{"the agent that called for it has ended"};
      });
    if (payer && context->run_budget.any())
      payer = std::make_shared<budget_account>(payer, context->run_budget, "the run");
    apply(std::move(input));
    if (auto until = machine.deadline(); until != never)
      deadline_timer_ = glue::send_after(*context->clock, self, until - now(), run_deadline{});
  }

  struct waiting_event {
    agent_event event;
    std::function<void()> then;  ///< once it is durable, or was ignored; may be empty
  };

  void apply(agent_event event, std::function<void()> then = {}) override {
    if (committing_)
      waiting_.push_back({std::move(event), std::move(then)});
    else
      fold({std::move(event), std::move(then)});
  }

  void fold(waiting_event w) {
    auto commands = machine.on(w.event, now());
    if (commands.empty()) {
      if (w.then)
        w.then();
      return;
    }
    auto kept = log.collect();
    kept.add(std::string{kind_of(w.event)}, [&] { return payload_of(w.event); });
    for (const auto& c : commands) {
      keep_command(kept, c);
      if (auto* x = std::get_if<note>(&c); x != nullptr && x->kind == "observation")
        tell_hooks(hook_point::after_step, [&] { return x->payload; });
    }
    committing_ = true;
    log.commit(kept, [this, commands = std::move(commands), then = std::move(w.then)]() mutable {
      committing_ = false;
      for (auto& c : commands)
        execute(std::move(c));
      if (then)
        then();
      fold_waiting();
    });
  }

  /// The event itself; its start also says which sample it is of, or which call of a manager's, so
  /// that a trace finds it.
  [[nodiscard]] json payload_of(const agent_event& event) const {
    auto payload = to_json(event);
    if (!std::holds_alternative<run_started>(event))
      return payload;
    if (run.manager)
      payload["manager"] = {{"run", run.manager->run.value}, {"call", run.manager->call.value}};
    else
      payload["sample_id"] = run.sample;
    return payload;
  }

  void fold_waiting() {
    while (!committing_ && !waiting_.empty()) {
      auto next = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      fold(std::move(next));
    }
  }

  void execute(agent_command c) {
    std::visit(overloaded{
                 [this](ask_model& x) { turns_.begin(std::move(x)); },
                 [this](run_code& x) { snippets_.begin(std::move(x.code)); },
                 [this](call_tool& x) { calls_.begin(std::move(x)); },
                 [this](abandon&) { abandon_effects(); },
                 [this](finish& x) { end(std::move(x)); },
                 [](note&) {},
                 [](await_more&) {},
               },
               c);
  }

  void on_code_end() override { calls_.cancel_children("the code that called for it has ended"); }

  void on_journal_failure(const error& why) override {
    abandon_effects();
    finish how;
    how.end = run_end::error;
    how.error = "the journal cannot be written: " + why.detail;
    end(std::move(how));
  }

  void abandon_effects() {
    ++effect;
    calls_.cancel_children("the agent that called for it was ended");
    turns_.abandon();
    snippets_.close();
  }

  // --- of managed agents
  // -----------------------------------------------------------------------------------

  void on_wanted(tool_wanted x) {
    if (shared_)
      shared_->on_wanted(std::move(x));
    else
      calls_.on_wanted(std::move(x));
  }

  caf::result<snippet_answer> on_lent_run(lent_run x) {
    if (!shared_ || machine.finished())
      return glue::to_caf({errc::cancelled, "its manager has ended"});
    return shared_->on_run(std::move(x));
  }

  void on_child_finished(const run_finished& x) {
    if (shared_)
      shared_->on_end(x.run);
    calls_.on_finished(x);
  }

  void on_child_gone(const child_ended& x) {
    if (shared_)
      shared_->on_end(run_of(x));
    calls_.on_ended(x);
  }

  // --- the end
  // ---------------------------------------------------------------------------------------------

  /// Managed agents that still run are ended first, and what they cost is counted.
  void end(finish how) {
    calls_.end_children(std::move(how), [this](finish all) {
      snippets_.close_then(
        [this, all = std::make_shared<finish>(std::move(all))] { report(std::move(*all)); });
    });
  }

  void report(finish how) {
    tell_hooks(hook_point::run_ended, [&] {
      json what{{"end", to_string(how.end)}, {"error", how.error}};
      what["answer"] = how.answer ? to_plain(how.answer->tagged) : json{};
      return what;
    });
    run_finished done;
    done.run = run.run;
    done.end = std::move(how);
    done.sandboxes = totals.sandboxes;
    done.tool_calls = totals.tool_calls;
    done.wall = std::chrono::duration_cast<micros>(now() - started_);
    done.model_wait = totals.model_wait;
    done.model = totals.model;
    done.journal_error = log.failure();
    glue::post(run.owner, std::move(done));
    self->quit();
  }

  model_turns turns_;
  snippet_runs snippets_;
  run_calls calls_;
  std::unique_ptr<shared_box> shared_;  // null: each of its agents has its own
  std::vector<waiting_event> waiting_;  // rarely more than one; an empty deque takes 600 bytes
  time_point started_{};
  timer_id deadline_timer_ = 0;
  bool committing_ = false;
};

}  // namespace

caf::actor spawn_agent(caf::actor_system& sys, std::shared_ptr<const agent_context> context,
                       agent_run run) {
  return sys.spawn<caf::stateful_actor<agent_state>>(std::move(context), std::move(run));
}

}  // namespace troupe

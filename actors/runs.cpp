#include "actors/runs.hpp"

#include "actors/caf_glue.hpp"
#include "actors/result_of.hpp"

#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

using order_ptr = std::shared_ptr<const run_order>;

struct open_run {
  order_ptr order;
  caf::actor agent{};  ///< null until it has started
  std::int64_t started_at = 0;
  bool finished = false;                       ///< its result is being written
  std::optional<std::string> called_off = {};  ///< before it had started
  std::vector<run_pace> paces = {};            ///< likewise
};

/// The end of a run that its agent could not tell.
run_result untold(const run_order& order, run_end end, std::string why, std::int64_t started_at) {
  run_finished how;
  how.run = order.run;
  how.end.end = end;
  how.end.error = std::move(why);
  return result_of(how, order.sample, 1, started_at);
}

class runs_state {
public:
  runs_state(caf::event_based_actor* self, std::shared_ptr<address> agents, runs_options options)
    : self_{self}, agents_{std::move(agents)}, options_{options} {}

  ~runs_state() {
    constexpr const char* why = "the actor that keeps runs has ended";
    for (auto& [_, r] : open_) {
      glue::post(r.agent, run_cancel{why});
      r.order->done(untold(*r.order, run_end::error, why, r.started_at));
    }
    for (auto& order : waiting_)
      order->done(untold(*order, run_end::error, why, wall_micros()));
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](const run_submit& x) { on_submit(x.order); },
      [this](const run_call_off& x) { on_call_off(x); },
      [this](const run_gate& x) { on_gate(x); },
      [this](const run_finished& x) { on_finished(x); },
      [this](const agent_gone& x) { on_gone(x); },
      [this](const stop&) { on_stop(); },
    };
  }

  static inline const char* name = "runs";

private:
  void on_submit(const order_ptr& order) {
    if (stopping_)
      order->done(untold(*order, run_end::cancelled, stop_reason, wall_micros()));
    else if (open_.size() < options_.max_concurrency)
      start(order);
    else if (waiting_.size() < options_.max_waiting)
      waiting_.push_back(order);
    else
      order->done(untold(*order, run_end::error,
                         std::to_string(waiting_.size())
                           + " runs wait for a place already; submit fewer at once, or allow "
                             "more by max_concurrency",
                         wall_micros()));
  }

  void start(const order_ptr& order) {
    auto run = order->run;
    agent_run own{run, order->sample, order->files, caf::actor{self_},
                  1,   order->viewer, order->paused};
    child_spec spec;
    spec.name = "run-" + to_string(run);
    spec.restart = restart_type::temporary;
    spec.start = [order, agents = agents_, own](caf::actor_system& sys) {
      return order->session ? spawn_session(sys, *order->session, own, agents)
                            : spawn_agent(sys, order->agent, own);
    };
    open_[run] = {order, nullptr, wall_micros()};
    auto agents = agents_->get();
    if (!agents) {
      lose(run, "no agent can be started: their supervisor is being restarted");
      return;
    }
    self_->request(agents, caf::infinite, start_child{std::move(spec), nullptr})
      .then([this, run](const child_started& x) { on_started(run, x.child); },
            [this, run](const caf::error& e) {
              lose(run, "no agent can be started: " + glue::from_caf(e).detail);
            });
  }

  void on_started(run_id run, const caf::actor& agent) {
    auto it = open_.find(run);
    if (it == open_.end())
      return;
    auto& r = it->second;
    r.agent = agent;
    glue::watch(self_, agent, [run](const caf::error& why) {
      return agent_gone{run, {glue::is_normal_exit(why), glue::from_caf(why).detail}};
    });
    for (auto pace : r.paces)
      glue::post(agent, run_gate{run, pace});
    glue::post(agent, run_start{r.order->input});
    if (r.called_off)
      glue::post(agent, run_cancel{*r.called_off});
  }

  void on_call_off(const run_call_off& x) {
    if (auto it = open_.find(x.run); it != open_.end()) {
      if (it->second.agent)
        glue::post(it->second.agent, run_cancel{x.reason});
      else
        it->second.called_off = x.reason;
      return;
    }
    auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                              [&](const order_ptr& o) { return o->run == x.run; });
    if (waits == waiting_.end())
      return;
    auto order = std::move(*waits);
    waiting_.erase(waits);
    order->done(untold(*order, run_end::cancelled, x.reason, wall_micros()));
  }

  void on_gate(const run_gate& x) {
    auto it = open_.find(x.run);
    if (it == open_.end()) {
      on_gate_of_waiting(x);
      return;
    }
    if (it->second.agent)
      glue::post(it->second.agent, x);
    else
      it->second.paces.push_back(x.how);
  }

  /// An order is shared and stays as it is: one that waits begins with its gate set anew.
  void on_gate_of_waiting(const run_gate& x) {
    for (auto& order : waiting_)
      if (order->run == x.run) {
        auto changed = std::make_shared<run_order>(*order);
        changed->paused = x.how != run_pace::resume;
        order = std::move(changed);
      }
  }

  void on_finished(const run_finished& x) {
    auto it = open_.find(x.run);
    if (it == open_.end() || std::exchange(it->second.finished, true))
      return;
    auto& r = it->second;
    auto result = result_of(x, r.order->sample, 1, r.started_at);
    const auto& journal = r.order->agent->journal;
    if (!journal || !x.journal_error.empty()) {
      over(x.run, std::move(result));
      return;
    }
    auto entry = std::make_shared<journal_entry>();
    entry->result = std::move(result);
    self_->request(journal->get(), caf::infinite, journal_append{entry})
      .then([this, run = x.run, entry](const journal_durable&) { over(run, *entry->result); },
            [this, run = x.run](const caf::error& e) {
              lose(run, "the result cannot be written: " + glue::from_caf(e).detail);
            });
  }

  /// Before this there was run_finished, unless the agent crashed or was killed.
  void on_gone(const agent_gone& x) {
    auto it = open_.find(x.run);
    if (it == open_.end() || it->second.finished)
      return;
    glue::post(it->second.order->agent->model->get(), model_cancel{x.run});
    lose(x.run, x.how.normal ? "its agent was ended" : "its agent crashed: " + x.how.reason);
  }

  void lose(run_id run, std::string why) {
    auto it = open_.find(run);
    if (it == open_.end())
      return;
    auto& r = it->second;
    over(run, untold(*r.order, stopping_ ? run_end::cancelled : run_end::error, std::move(why),
                     r.started_at));
  }

  void over(run_id run, run_result result) {
    auto order = open_.at(run).order;
    open_.erase(run);
    order->done(std::move(result));
    if (!stopping_ && !waiting_.empty() && open_.size() < options_.max_concurrency) {
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      start(next);
    }
    if (stopping_ && open_.empty())
      self_->quit();
  }

  void on_stop() {
    stopping_ = true;
    for (auto& order : std::exchange(waiting_, {}))
      order->done(untold(*order, run_end::cancelled, stop_reason, wall_micros()));
    for (auto& [run, r] : open_) {
      if (r.agent)
        glue::post(r.agent, run_cancel{stop_reason});
      else
        r.called_off = stop_reason;
    }
    if (open_.empty())
      self_->quit();
  }

  static constexpr const char* stop_reason = "the runtime is stopping";

  caf::event_based_actor* self_;
  std::shared_ptr<address> agents_;
  runs_options options_;
  std::unordered_map<run_id, open_run> open_;
  std::deque<order_ptr> waiting_;
  bool stopping_ = false;
};

}  // namespace

caf::actor spawn_runs(caf::actor_system& sys, std::shared_ptr<address> agents,
                      const runs_options& options) {
  return sys.spawn<caf::stateful_actor<runs_state>>(std::move(agents), options);
}

}  // namespace troupe

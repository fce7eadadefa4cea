#include "actors/reply_keeper.hpp"

#include "actors/caf_glue.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <unordered_map>

namespace troupe {
namespace {

class reply_keeper_state {
public:
  reply_keeper_state(caf::event_based_actor* self, std::shared_ptr<address> model,
                     std::shared_ptr<reply_shelf> shelf, reply_keeper_options options,
                     std::shared_ptr<reply_keeper_stats> stats, timers& clock)
    : self_{self}, model_{std::move(model)}, shelf_{std::move(shelf)}, options_{std::move(options)},
      stats_{std::move(stats)}, clock_{clock} {}

  ~reply_keeper_state() { shelf_->flush(); }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](model_ask& x) { return on_ask(std::move(x)); },
      [this](const model_cancel& x) { on_cancel(x.run); },
      [this](const flush_due&) {
        flushing_ = false;
        shelf_->flush();
      },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "reply_keeper";

private:
  using promise = caf::typed_response_promise<model_answer>;

  struct asker {
    model_ask ask;
    promise answer;
    time_point since;
  };

  /// One request that the model is being asked. The first asker's viewer sees the reply come.
  struct open_call {
    request_identity request;
    std::vector<asker> askers;
  };

  caf::result<model_answer> on_ask(model_ask x) {
    auto answer = self_->make_response_promise<model_answer>();
    auto request = identify(*options_.format, options_.base, x.request);
    asker one{std::move(x), answer, clock_.now()};
    if (auto found = shelf_->find(request, one.ask.request.draw)) {
      ++stats_->found;
      give(one, *std::move(found), true);
      return answer;
    }
    auto key = request.key() + ' ' + std::to_string(one.ask.request.draw);
    by_run_[one.ask.request.run] = key;
    auto& call = calls_[key];
    call.request = std::move(request);
    call.askers.push_back(std::move(one));
    if (call.askers.size() == 1)
      pass_on(key, call);
    else
      ++stats_->shared;
    return answer;
  }

  void pass_on(const std::string& key, const open_call& call) {
    ++stats_->asked;
    auto client = model_->get();
    if (!client) {
      settle(key, tl::unexpected(error{errc::unavailable, "the model client is not running"}));
      return;
    }
    self_->request(client, caf::infinite, call.askers.front().ask)
      .then([this, key](model_answer& x) { settle(key, std::move(x.outcome)); },
            [this, key](const caf::error& e) { settle(key, tl::unexpected(glue::from_caf(e))); });
  }

  void settle(const std::string& key, tl::expected<model_outcome, error> outcome) {
    auto node = calls_.extract(key);
    if (node.empty())
      return;
    auto call = std::move(node.mapped());
    auto cancelled = outcome && !*outcome && outcome->error().kind == failure_class::cancelled;
    if (outcome && !cancelled)
      keep(call.request, call.askers.front().ask.request.draw, *outcome);
    for (std::size_t i = 0; i < call.askers.size(); ++i) {
      if (i > 0 && cancelled)
        return ask_again(key, std::move(call));  // not for him who has cancelled it
      auto& one = call.askers[i];
      if (!outcome)
        give_error(one, outcome.error());
      else if (i == 0)
        give(one, *outcome, false);
      else
        give(one, unpaid(*outcome), true);
    }
  }

  void ask_again(const std::string& key, open_call call) {
    call.askers.erase(call.askers.begin());
    auto& again = calls_[key] = std::move(call);
    pass_on(key, again);
  }

  static model_outcome unpaid(model_outcome x) {
    if (x)
      x->attempts = 0;
    else
      x.error().attempts = 0;
    return x;
  }

  void keep(const request_identity& request, std::uint32_t draw, const model_outcome& outcome) {
    shelf_->keep(request, draw, outcome);
    if (!std::exchange(flushing_, true))
      glue::send_after(clock_, self_, options_.flush_after, flush_due{});
  }

  /// `show`: also to its viewer, who saw nothing of it yet.
  void give(asker& one, model_outcome outcome, bool show) {
    const auto run = one.ask.request.run;
    by_run_.erase(run);
    if (outcome && show) {
      outcome->latency = std::chrono::duration_cast<millis>(clock_.now() - one.since);
      if (one.ask.viewer && !outcome->text.empty())
        glue::post(one.ask.viewer,
                   model_seen{run, {{model_delta::kind::text, outcome->text, 0, {}}}});
    }
    one.ask.request.messages = {};  // before the asker is told, so that it can append in place
    one.answer.deliver(model_answer{std::move(outcome)});
  }

  void give_error(asker& one, const error& e) {
    by_run_.erase(one.ask.request.run);
    one.answer.deliver(glue::to_caf(e));
  }

  void on_cancel(run_id run) {
    auto known = by_run_.find(run);
    if (known == by_run_.end())
      return;
    auto& askers = calls_.at(known->second).askers;
    auto it = std::find_if(askers.begin(), askers.end(),
                           [run](const asker& a) { return a.ask.request.run == run; });
    if (it != askers.begin()) {
      give(*it, tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, 0}), false);
      askers.erase(it);
    } else if (auto client = model_->get()) {
      glue::post(client, model_cancel{run});
    }
  }

  caf::event_based_actor* self_;
  std::shared_ptr<address> model_;
  std::shared_ptr<reply_shelf> shelf_;
  reply_keeper_options options_;
  std::shared_ptr<reply_keeper_stats> stats_;
  timers& clock_;
  std::unordered_map<std::string, open_call> calls_;
  std::unordered_map<run_id, std::string> by_run_;
  bool flushing_ = false;
};

}  // namespace

caf::actor spawn_reply_keeper(caf::actor_system& sys, std::shared_ptr<address> model,
                              std::shared_ptr<reply_shelf> shelf, reply_keeper_options options,
                              std::shared_ptr<reply_keeper_stats> stats, timers& clock) {
  using keeper = caf::stateful_actor<reply_keeper_state>;
  if (options.own_thread)
    return sys.spawn<keeper, caf::detached>(std::move(model), std::move(shelf), std::move(options),
                                            std::move(stats), std::ref(clock));
  return sys.spawn<keeper>(std::move(model), std::move(shelf), std::move(options), std::move(stats),
                           std::ref(clock));
}

}  // namespace troupe

#include "actors/model_client.hpp"

#include "actors/caf_glue.hpp"
#include "actors/model_call.hpp"
#include "runtime/core/overloaded.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace troupe {
namespace {

constexpr millis counted_wait{1};  // less is the way through the queue

using outcome = model_outcome;
using call = model_call;

constexpr millis budget_poll{100};
// An end of a try makes room for about one more; when nothing is left all shall hear of it.
constexpr std::size_t few_at_once = 4;
constexpr std::size_t many_at_once = 256;

class model_client_state {
public:
  model_client_state(caf::event_based_actor* self, std::vector<model_route> routes,
                     const model_client_options& options, std::shared_ptr<model_client_stats> stats,
                     timers& clock)
    : self_{self}, options_{options}, stats_{std::move(stats)}, clock_{clock},
      random_{options.seed}, lanes_{std::move(routes), options}, queues_(lanes_.choices()) {}

  ~model_client_state() {
    // A call that is open when the actor ends would hold its socket until the server answers.
    for (auto& [id, c] : calls_)
      if (c.in_flight) {
        lanes_.where(c.lane).cancel(c.ticket);
        if (c.payer)  // others may hold the account longer than we do
          c.payer->settle(c.reserved, lanes_.used(c.lane, abandoned(c)));
      }
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](model_ask& x) { return on_ask(std::move(x)); },
      [this](attempt_done& x) { on_attempt_done(x); },
      [this](const attempt_due& x) { enqueue(x.call, true); },
      [this](const model_cancel& x) { on_cancel(x.run); },
      [this](const model_tune& x) { on_tune(x); },
      [this](const pause_over&) {
        wake_at_ = never;
        ask_budget_again(many_at_once);
        serve_all();
      },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "model_client";

private:
  // --- calls come in, and wait
  // --------------------------------------------------------------------

  caf::result<model_answer> on_ask(model_ask x) {
    ++stats_->calls;
    auto promise = self_->make_response_promise<model_answer>();
    if (waiting() >= options_.max_queue) {
      promise.deliver(model_answer{tl::unexpected(model_failure{
        failure_class::unknown,
        "the model queue is full (" + std::to_string(options_.max_queue) + " calls waiting)",
        {},
        0})});
      return promise;
    }
    auto id = ++last_id_;
    by_run_[x.request.run] = id;
    auto& c = calls_[id];
    c.request = std::move(x.request);
    c.from = x.from;
    c.payer = std::move(x.payer);
    c.viewer = std::move(x.viewer);
    c.promise = promise;
    c.asked = clock_.now();
    enqueue(id, false);
    return promise;
  }

  [[nodiscard]] std::size_t waiting() const {
    auto n = short_of_budget_.size();
    for (auto& q : queues_)
      n += q.size();
    return n;
  }

  /// A retry goes to the front: it has waited before.
  void enqueue(std::uint64_t id, bool front) {
    auto it = calls_.find(id);
    if (it == calls_.end())
      return;  // cancelled while it backed off
    auto& c = it->second;
    c.queued = clock_.now();
    c.probes = lanes_.failed_probes(c.choice);
    queues_[c.choice].push(c.from, id, front);
    serve(c.choice);
  }

  void on_tune(const model_tune& x) {
    if (x.max_in_flight)
      options_.max_in_flight = *x.max_in_flight;
    lanes_.tune(x);
    serve_all();
  }

  // --- and go out
  // ---------------------------------------------------------------------------------

  void serve_all() {
    for (std::uint32_t choice = 0; choice < lanes_.choices(); ++choice)
      serve(choice);
  }

  /// Starts what may start, in the order of the queue.
  void serve(std::uint32_t choice) {
    auto& queue = queues_[choice];
    auto now = clock_.now();
    while (!queue.empty() && in_flight_ < options_.max_in_flight) {
      auto it = calls_.find(queue.next());
      if (it == calls_.end())
        queue.pop(0);  // cancelled
      else if (!serve_next(queue, it->first, it->second, now))
        return;
    }
  }

  /// False when the first in the queue has to wait, and so everybody.
  bool serve_next(fair_queue& queue, std::uint64_t id, call& c, time_point now) {
    if (now >= c.request.deadline) {
      queue.pop(0);
      settle(id, tl::unexpected(model_failure{failure_class::timeout,
                                              "the deadline passed while the call was queued",
                                              {},
                                              c.attempts}));
      return true;
    }
    auto size = size_of(c);
    auto to = lanes_.pick(c.choice, size, c.lane, now);
    if (to.lane == model_lanes::none) {
      if (lanes_.all_down(c.choice, now) && leave_queue(queue, id, c))
        return true;
      wake(std::min(to.when, c.request.deadline));
      return false;
    }
    if (c.payer && !may_spend(queue, id, c, to.lane, size))
      return true;
    queue.pop(static_cast<double>(size.bytes) + 1);
    start(id, c, to.lane, size, now);
    return true;
  }

  // --- budgets
  // ------------------------------------------------------------------------------------

  /// Reserves the most that the try may use. If it may not go, it has left the queue.
  bool may_spend(fair_queue& queue, std::uint64_t id, call& c, std::size_t lane,
                 const call_size& size) {
    c.reserved = lanes_.most(lane, size);
    auto answer = c.payer->reserve(c.reserved);
    if (answer == budget_answer::granted)
      return true;
    queue.pop(0);
    if (answer == budget_answer::wait) {
      short_of_budget_.push_back(id);
      if (in_flight_ == 0)  // somebody else's call is what we wait for
        wake(clock_.now() + budget_poll);
      return false;
    }
    settle(id, tl::unexpected(
                 model_failure{failure_class::budget, c.payer->exhausted(), {}, c.attempts}));
    if (!short_of_budget_.empty())  // those will hear the same, one after the other
      wake(clock_.now() + millis{1});
    return false;
  }

  void pay(call& c, const token_usage& used) {
    if (!c.payer)
      return;
    c.payer->settle(c.reserved, lanes_.used(c.lane, used));
    ask_budget_again(few_at_once);
  }

  /// Whoever calls this serves after.
  void ask_budget_again(std::size_t most) {
    auto n = static_cast<std::ptrdiff_t>(std::min(most, short_of_budget_.size()));
    for (auto i = n; i-- > 0;)  // each goes to the front: the first is pushed last
      if (auto it = calls_.find(short_of_budget_[static_cast<std::size_t>(i)]); it != calls_.end())
        queues_[it->second.choice].push(it->second.from, it->first, true);
    short_of_budget_.erase(short_of_budget_.begin(), short_of_budget_.begin() + n);
  }

  /// Its endpoints are down: whoever has another model goes there; the others wait as many failed
  /// attempts at coming back as they would have made themselves.
  bool leave_queue(fair_queue& queue, std::uint64_t id, call& c) {
    auto failed = lanes_.failed_probes(c.choice);
    c.probes = std::min(c.probes, failed);
    auto spent = c.tries + (failed - c.probes) >= options_.retry.max_attempts;
    auto elsewhere = c.choice + 1 < lanes_.choices();
    if (!spent && !elsewhere)
      return false;
    queue.pop(0);
    if (elsewhere) {
      fall_back(id, c);
    } else {
      auto failure = lanes_.last_failure(c.choice);
      failure.detail += "; the endpoint did not come back";
      explain(failure, c.attempts, "it is down");
      settle(id, tl::unexpected(std::move(failure)));
    }
    return true;
  }

  void start(std::uint64_t id, call& c, std::size_t lane, const call_size& size, time_point now) {
    ++c.attempts;
    ++c.tries;
    ++stats_->attempts;
    if (auto waited = now - c.queued; waited >= counted_wait) {
      ++stats_->waits;
      stats_->waited_us +=
        static_cast<std::uint64_t>(std::chrono::duration_cast<micros>(waited).count());
    }
    c.lane = lane;
    c.pass = lanes_.start(lane, size, now);
    c.in_flight = true;
    stats_->in_flight = ++in_flight_;
    auto deadline = std::min(after(now, options_.attempt_timeout), c.request.deadline);
    c.ticket =
      lanes_.where(lane).ask(lanes_.addressed(lane, c.request), deadline, show_to_viewer(c),
                             [to = glue::weak_handle{self_}, id, attempt = c.attempts](outcome o) {
                               to.post(attempt_done{id, attempt, std::move(o)});
                             });
  }

  void wake(time_point when) {
    if (when >= wake_at_)
      return;  // never: the end of a try wakes us
    wake_at_ = when;
    glue::send_after(clock_, self_, when - clock_.now(), pause_over{});
  }

  /// Pieces go straight from the endpoint's thread to the viewer: many streams at once would make
  /// this actor their bottleneck.
  static endpoint::seen_fn show_to_viewer(call& c) {
    if (!c.viewer)
      return nullptr;
    c.shown = std::make_shared<std::atomic<bool>>(false);
    return
      [viewer = c.viewer, run = c.request.run, shown = c.shown](std::vector<model_delta> pieces) {
        *shown = true;
        glue::post(viewer, model_seen{run, std::move(pieces)});
      };
  }

  /// The viewer must not take two tries for one reply.
  static void forget_shown(const call& c) {
    if (c.shown && *c.shown)
      glue::post(c.viewer, model_seen{c.request.run, {{model_delta::kind::restart, {}, 0, {}}}});
  }

  // --- tries end
  // ----------------------------------------------------------------------------------

  void on_attempt_done(attempt_done& x) {
    auto it = calls_.find(x.call);
    if (it == calls_.end() || !it->second.in_flight || it->second.attempts != x.attempt)
      return;
    auto& c = it->second;
    c.in_flight = false;
    stats_->in_flight = --in_flight_;
    auto now = clock_.now();
    lanes_.end(c.lane, c.pass, x.outcome, options_.retry.longest_hint, now);
    pay(c, x.outcome ? x.outcome->usage : token_usage{});
    if (x.outcome)
      settle(x.call, std::move(x.outcome));
    else
      on_failure(x.call, c, std::move(x.outcome.error()), now);
    serve_all();
  }

  void on_failure(std::uint64_t id, call& c, model_failure failure, time_point now) {
    if (failure.kind == failure_class::rate_limited)
      ++stats_->rate_limited;
    // At once elsewhere, as far as there is another endpoint; then a pause, as with one alone.
    if (is_transient(failure.kind) && c.hops + 1 < lanes_.lanes(c.choice)
        && lanes_.has_other(c.choice, size_of(c), c.lane, now)) {
      ++stats_->failovers;
      ++c.hops;
      --c.tries;
      again(id, c, millis{0});
      return;
    }
    c.hops = 0;
    auto next = after_failure(options_.retry, failure.kind, c.tries, failure.retry_after, now,
                              c.request.deadline, random_);
    std::visit(overloaded{
                 [&](const try_again& t) { again(id, c, t.delay); },
                 [&](const stop_trying& s) {
                   if (may_fall_back(c, failure.kind, now))
                     fall_back(id, c);
                   else
                     give_up(id, c, std::move(failure), s.why);
                 },
               },
               next);
  }

  void again(std::uint64_t id, const call& c, millis delay) {
    ++stats_->retries;
    forget_shown(c);
    if (delay > millis{0})
      glue::send_after(clock_, self_, delay, attempt_due{id});
    else
      enqueue(id, true);
  }

  /// Not after what the user has to mend: it would be hidden.
  [[nodiscard]] bool may_fall_back(const call& c, failure_class kind, time_point now) const {
    return c.choice + 1 < lanes_.choices() && now < c.request.deadline
           && (is_transient(kind) || kind == failure_class::quota);
  }

  void fall_back(std::uint64_t id, call& c) {
    ++stats_->fallbacks;
    forget_shown(c);
    ++c.choice;
    c.tries = 0;
    c.lane = model_lanes::none;
    enqueue(id, true);
  }

  void give_up(std::uint64_t id, const call& c, model_failure failure, std::string_view why) {
    explain(failure, c.attempts, why);
    settle(id, tl::unexpected(std::move(failure)));
  }

  void settle(std::uint64_t id, outcome o) {
    auto node = calls_.extract(id);
    auto& c = node.mapped();
    if (auto it = by_run_.find(c.request.run); it != by_run_.end() && it->second == id)
      by_run_.erase(it);
    // The view is dropped before the asker is told, so that it can append in place.
    c.request.messages = {};
    if (o) {
      o->attempts = c.attempts;
      o->substitute = c.choice > 0;
      o->latency = std::chrono::duration_cast<millis>(clock_.now() - c.asked);
    } else {
      ++stats_->failures;
    }
    c.promise.deliver(model_answer{std::move(o)});
  }

  void on_cancel(run_id run) {
    auto it = by_run_.find(run);
    if (it == by_run_.end())
      return;
    auto id = it->second;
    auto& c = calls_.at(id);
    if (c.in_flight) {
      c.in_flight = false;
      stats_->in_flight = --in_flight_;
      lanes_.abandon(c.lane, c.pass, clock_.now());
      pay(c, abandoned(c));
      lanes_.where(c.lane).cancel(c.ticket);
    }
    settle(id,
           tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, c.attempts}));
    serve_all();
  }

  caf::event_based_actor* self_;
  model_client_options options_;
  std::shared_ptr<model_client_stats> stats_;
  timers& clock_;
  rng random_;
  model_lanes lanes_;
  std::vector<fair_queue> queues_;  // one per choice of model; may hold ids of cancelled calls
  std::deque<std::uint64_t> short_of_budget_;
  std::unordered_map<std::uint64_t, call> calls_;
  std::unordered_map<run_id, std::uint64_t> by_run_;
  std::size_t in_flight_ = 0;
  std::uint64_t last_id_ = 0;
  time_point wake_at_ = never;
};

}  // namespace

caf::actor spawn_model_client(caf::actor_system& sys, std::vector<model_route> routes,
                              const model_client_options& options,
                              std::shared_ptr<model_client_stats> stats, timers& clock) {
  return sys.spawn<caf::stateful_actor<model_client_state>>(std::move(routes), options,
                                                            std::move(stats), std::ref(clock));
}

caf::actor spawn_model_client(caf::actor_system& sys, std::shared_ptr<endpoint> where,
                              const model_client_options& options,
                              std::shared_ptr<model_client_stats> stats, timers& clock) {
  std::vector<model_route> routes;
  routes.push_back({std::move(where)});
  return spawn_model_client(sys, std::move(routes), options, std::move(stats), clock);
}

}  // namespace troupe

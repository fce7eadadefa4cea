#include "actors/model_client.hpp"

#include "actors/caf_glue.hpp"
#include "runtime/core/overloaded.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <unordered_map>

namespace troupe {
namespace {

using outcome = model_outcome;

struct call {
  model_request request;
  caf::actor viewer;
  caf::typed_response_promise<model_answer> promise;
  time_point asked;
  std::uint32_t attempt = 0;  ///< tries begun
  endpoint::ticket ticket = 0;
  bool in_flight = false;
  std::shared_ptr<std::atomic<bool>> shown;  ///< of a call with a viewer: it saw some of a try
};

class model_client_state {
public:
  model_client_state(caf::event_based_actor* self, std::shared_ptr<endpoint> where,
                     model_client_options options, std::shared_ptr<model_client_stats> stats,
                     timers& clock)
    : self_{self}, endpoint_{std::move(where)}, options_{options}, stats_{std::move(stats)},
      clock_{clock}, random_{options.seed} {}

  ~model_client_state() {
    // A call that is open when the actor ends would hold its socket until the server answers.
    for (auto& [id, c] : calls_)
      if (c.in_flight)
        endpoint_->cancel(c.ticket);
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](model_ask& x) { return on_ask(std::move(x)); },
      [this](attempt_done& x) { on_attempt_done(x); },
      [this](const attempt_due& x) { enqueue(x.call, true); },
      [this](const model_cancel& x) { on_cancel(x.run); },
      [this](const pause_over&) { start_waiting(); },
      [this](const stop&) { self_->quit(); },
    };
  }

  static inline const char* name = "model_client";

private:
  caf::result<model_answer> on_ask(model_ask x) {
    ++stats_->calls;
    auto promise = self_->make_response_promise<model_answer>();
    if (waiting_.size() >= options_.max_queue) {
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
    c.viewer = std::move(x.viewer);
    c.promise = promise;
    c.asked = clock_.now();
    enqueue(id, false);
    return promise;
  }

  /// A retry goes to the front: it has waited before.
  void enqueue(std::uint64_t id, bool front) {
    if (!calls_.contains(id))
      return;  // cancelled while it backed off
    if (front)
      waiting_.push_front(id);
    else
      waiting_.push_back(id);
    start_waiting();
  }

  void start_waiting() {
    auto now = clock_.now();
    if (now < paused_until_)
      return;  // pause_over is on its way
    while (in_flight_ < options_.max_in_flight && !waiting_.empty()) {
      auto id = waiting_.front();
      waiting_.pop_front();
      if (auto it = calls_.find(id); it != calls_.end())
        start(id, it->second, now);
    }
  }

  void start(std::uint64_t id, call& c, time_point now) {
    if (now >= c.request.deadline) {
      settle(
        id,
        tl::unexpected(model_failure{
          failure_class::timeout, "the deadline passed while the call was queued", {}, c.attempt}));
      return;
    }
    ++c.attempt;
    ++stats_->attempts;
    c.in_flight = true;
    stats_->in_flight = ++in_flight_;
    auto deadline = std::min(after(now, options_.attempt_timeout), c.request.deadline);
    c.ticket = endpoint_->ask(c.request, deadline, show_to_viewer(c),
                              [to = glue::weak_handle{self_}, id, attempt = c.attempt](outcome o) {
                                to.post(attempt_done{id, attempt, std::move(o)});
                              });
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

  void on_attempt_done(attempt_done& x) {
    auto it = calls_.find(x.call);
    if (it == calls_.end() || !it->second.in_flight || it->second.attempt != x.attempt)
      return;
    it->second.in_flight = false;
    stats_->in_flight = --in_flight_;
    if (x.outcome)
      settle(x.call, std::move(x.outcome));
    else
      on_failure(x.call, it->second, std::move(x.outcome.error()));
    start_waiting();
  }

  void on_failure(std::uint64_t id, call& c, model_failure failure) {
    if (failure.kind == failure_class::rate_limited)
      ++stats_->rate_limited;
    auto now = clock_.now();
    auto next = after_failure(options_.retry, failure.kind, c.attempt, failure.retry_after, now,
                              c.request.deadline, random_);
    std::visit(overloaded{
                 [&](const try_again& t) {
                   ++stats_->retries;
                   forget_shown(c);
                   hold_back(failure, now);
                   glue::send_after(clock_, self_, t.delay, attempt_due{id});
                 },
                 [&](const stop_trying& s) { give_up(id, c, std::move(failure), s.why); },
               },
               next);
  }

  /// The server's wait is meant for everybody who calls it.
  void hold_back(const model_failure& failure, time_point now) {
    auto throttled =
      failure.kind == failure_class::rate_limited || failure.kind == failure_class::overloaded;
    if (!throttled || !failure.retry_after)
      return;
    auto until = after(now, *failure.retry_after);
    if (until <= paused_until_)
      return;
    paused_until_ = until;
    glue::send_after(clock_, self_, *failure.retry_after, pause_over{});
  }

  void give_up(std::uint64_t id, const call& c, model_failure failure, std::string_view why) {
    failure.attempts = c.attempt;
    if (failure.retry_after && is_transient(failure.kind) && *failure.retry_after >= millis{1000})
      failure.detail +=
        "; the server asks to wait " + std::to_string(failure.retry_after->count() / 1000) + " s";
    if (c.attempt > 1)
      failure.detail +=
        " (" + std::to_string(c.attempt) + " tries; gave up: " + std::string{why} + ")";
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
      o->attempts = c.attempt;
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
      endpoint_->cancel(c.ticket);
    }
    settle(id, tl::unexpected(model_failure{failure_class::cancelled, "cancelled", {}, c.attempt}));
    start_waiting();
  }

  caf::event_based_actor* self_;
  std::shared_ptr<endpoint> endpoint_;
  model_client_options options_;
  std::shared_ptr<model_client_stats> stats_;
  timers& clock_;
  rng random_;
  std::unordered_map<std::uint64_t, call> calls_;
  std::unordered_map<run_id, std::uint64_t> by_run_;
  std::deque<std::uint64_t> waiting_;  // may hold ids of cancelled calls
  std::size_t in_flight_ = 0;
  std::uint64_t last_id_ = 0;
  time_point paused_until_{};
};

}  // namespace

caf::actor spawn_model_client(caf::actor_system& sys, std::shared_ptr<endpoint> where,
                              model_client_options options,
                              std::shared_ptr<model_client_stats> stats, timers& clock) {
  return sys.spawn<caf::stateful_actor<model_client_state>>(std::move(where), options,
                                                            std::move(stats), std::ref(clock));
}

}  // namespace troupe

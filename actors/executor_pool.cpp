#include "actors/executor_pool.hpp"

#include "actors/caf_glue.hpp"
#include "actors/sandbox.hpp"
#include "runtime/core/log.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

namespace troupe {
namespace {

// A backend that had to be replaced loses the opens it was busy with; each gets a few tries.
constexpr std::uint32_t open_attempts = 3;

struct waiting_open {
  sandbox_open what;
  caf::typed_response_promise<sandbox_ready> promise;
  std::uint32_t attempts = 0;
};

struct place {
  std::optional<waiting_open> opening;  ///< until the backend has answered
  caf::actor box;
};

class executor_pool_state {
public:
  executor_pool_state(caf::event_based_actor* self, std::shared_ptr<executor> backend,
                      executor_pool_options options, std::shared_ptr<executor_pool_stats> stats)
    : self_{self}, backend_{std::move(backend)}, options_{std::move(options)},
      stats_{std::move(stats)} {}

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](sandbox_open& x) { return on_open(std::move(x)); },
      [this](sandbox_opened& x) { on_opened(x); },
      [this](const sandbox_gone& x) { on_gone(x); },
      [this](const opener_down& x) { on_opener_down(x.who); },
      [this](const stop&) { on_stop(); },
    };
  }

  static inline const char* name = "executor_pool";

private:
  caf::result<sandbox_ready> on_open(sandbox_open x) {
    auto promise = self_->make_response_promise<sandbox_ready>();
    if (stopping_)
      promise.deliver(glue::to_caf({errc::cancelled, "the executor is stopping"}));
    else if (x.below >= options_.max_sandboxes)
      promise.deliver(glue::to_caf({errc::over_budget, depth_text(x.below)}));
    else if (waiting_ >= options_.max_queue)
      promise.deliver(glue::to_caf({errc::over_budget, queue_text()}));
    else
      enqueue({std::move(x), promise, 0});
    open_waiting();
    return promise;
  }

  void enqueue(waiting_open w) {
    auto who = w.what.owner->id();
    glue::watch(self_, w.what.owner, [who](const caf::error&) { return opener_down{who}; });
    most_below_ = std::max(most_below_, w.what.below);
    queue_[w.what.below].push_back(std::move(w));
    ++waiting_;
  }

  /// A run that has ended while it waited needs no sandbox.
  void on_opener_down(caf::actor_id who) {
    for (auto& [below, queue] : queue_)
      waiting_ -=
        std::erase_if(queue, [who](const waiting_open& w) { return w.what.owner->id() == who; });
  }

  [[nodiscard]] std::string queue_text() const {
    return std::to_string(places_.size()) + " sandboxes are in use and " + std::to_string(waiting_)
           + " runs wait for one, which is as many as may: run fewer at once, or allow more "
             "sandboxes (--max-sandboxes)";
  }

  static std::string depth_text(std::uint32_t below) {
    return "an agent with " + std::to_string(below)
           + " levels of managed agents under it needs that many sandboxes and one more: allow "
             "more "
             "(--max-sandboxes)";
  }

  /// One sandbox may always be open, so that the queue moves.
  [[nodiscard]] bool has_memory(const sandbox_open& x) {
    if (places_.empty())
      return true;
    auto bytes = options_.memory();
    auto spare = options_.spare_memory_bytes / (x.managed ? 2 : 1);
    auto enough = bytes == 0 || bytes >= spare;
    if (!std::exchange(short_of_memory_, !enough) && !enough)
      log::warn("the machine has only " + std::to_string(bytes >> 20)
                + " MiB of memory left: no sandbox is opened until another has gone");
    return enough;
  }

  /// Managed agents first: their managers hold sandboxes until they are done. An agent leaves free
  /// one place for each level below it, so that all places are never held by agents that wait.
  void open_waiting() {
    for (auto& [below, queue] : queue_)
      while (!queue.empty() && places_.size() + below < options_.max_sandboxes
             && has_memory(queue.front().what)) {
        auto next = std::move(queue.front());
        queue.pop_front();
        --waiting_;
        open(std::move(next));
      }
  }

  void open(waiting_open w) {
    auto ticket = ++last_ticket_;
    auto spec = w.what.spec;
    ++w.attempts;
    places_[ticket].opening = std::move(w);
    stats_->live = places_.size();
    stats_->peak = std::max(stats_->peak.load(), places_.size());
    // Strong handle: an opened sandbox must find its pool, or nobody would close it.
    backend_->open(std::move(spec),
                   [me = caf::actor{self_}, ticket](result<std::shared_ptr<sandbox>> opened) {
                     glue::post(me, sandbox_opened{ticket, std::move(opened)});
                   });
  }

  void on_opened(sandbox_opened& x) {
    auto it = places_.find(x.ticket);
    if (it == places_.end())
      return;
    auto w = std::move(*std::exchange(it->second.opening, std::nullopt));
    if (!x.opened) {
      ++stats_->open_failures;
      if (x.opened.error().code == errc::unavailable && w.attempts < open_attempts && !stopping_) {
        queue_[w.what.below].push_front(std::move(w));
        ++waiting_;
        free_place(x.ticket);
        return;
      }
      w.promise.deliver(glue::to_caf(x.opened.error()));
      free_place(x.ticket);
      return;
    }
    ++stats_->opened;
    auto isolation = std::string{(*x.opened)->isolation()};
    it->second.box = spawn_sandbox(self_->system(), std::move(*x.opened), x.ticket, w.what.owner,
                                   caf::actor{self_}, options_.live_output);
    if (stopping_)
      glue::post(it->second.box, stop{});
    w.promise.deliver(sandbox_ready{it->second.box, std::move(isolation)});
  }

  void on_gone(const sandbox_gone& x) {
    if (!places_.contains(x.ticket))
      return;
    if (x.report.clean()) {
      ++stats_->closed_clean;
    } else {
      ++stats_->closed_unclean;
      // Something of it may live on: its place is not given to another.
      if (options_.max_sandboxes > most_below_ + 1)
        --options_.max_sandboxes;
      log::error("a sandbox was not verified gone: " + x.report.detail);
    }
    free_place(x.ticket);
  }

  void free_place(std::uint64_t ticket) {
    places_.erase(ticket);
    stats_->live = places_.size();
    if (stopping_ && places_.empty())
      self_->quit();
    else
      open_waiting();
  }

  void on_stop() {
    if (std::exchange(stopping_, true))
      return;
    for (auto& [below, queue] : queue_)
      for (auto& w : queue)
        w.promise.deliver(glue::to_caf({errc::cancelled, "the executor is stopping"}));
    queue_.clear();
    waiting_ = 0;
    for (auto& [ticket, p] : places_)
      glue::post(p.box, stop{});
    if (places_.empty())
      self_->quit();
  }

  caf::event_based_actor* self_;
  std::shared_ptr<executor> backend_;
  executor_pool_options options_;
  std::shared_ptr<executor_pool_stats> stats_;
  std::unordered_map<std::uint64_t, place> places_;
  std::map<std::uint32_t, std::deque<waiting_open>> queue_;  ///< by levels below, each in order
  std::size_t waiting_ = 0;
  std::uint32_t most_below_ = 0;
  std::uint64_t last_ticket_ = 0;
  bool short_of_memory_ = false;
  bool stopping_ = false;
};

}  // namespace

caf::actor spawn_executor_pool(caf::actor_system& sys, std::shared_ptr<executor> backend,
                               executor_pool_options options,
                               std::shared_ptr<executor_pool_stats> stats) {
  return sys.spawn<caf::stateful_actor<executor_pool_state>>(std::move(backend), std::move(options),
                                                             std::move(stats));
}

}  // namespace troupe

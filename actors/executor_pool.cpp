#include "actors/executor_pool.hpp"

#include "actors/caf_glue.hpp"
#include "actors/sandbox.hpp"
#include "runtime/core/log.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <deque>
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
    else if (queue_.size() >= options_.max_queue)
      promise.deliver(glue::to_caf({errc::over_budget, queue_text()}));
    else
      enqueue({std::move(x), promise, 0});
    open_waiting();
    return promise;
  }

  void enqueue(waiting_open w) {
    auto who = w.what.owner->id();
    glue::watch(self_, w.what.owner, [who](const caf::error&) { return opener_down{who}; });
    queue_.push_back(std::move(w));
  }

  /// A run that has ended while it waited needs no sandbox.
  void on_opener_down(caf::actor_id who) {
    std::erase_if(queue_, [who](const waiting_open& w) { return w.what.owner->id() == who; });
  }

  [[nodiscard]] std::string queue_text() const {
    return std::to_string(places_.size()) + " sandboxes are in use and "
           + std::to_string(queue_.size())
           + " runs wait for one, which is as many as may: run fewer at once, or allow more "
             "sandboxes (--max-sandboxes)";
  }

  /// One sandbox may always be open, so that the queue moves.
  [[nodiscard]] bool has_memory() {
    if (places_.empty())
      return true;
    auto bytes = options_.memory();
    auto enough = bytes == 0 || bytes >= options_.spare_memory_bytes;
    if (!std::exchange(short_of_memory_, !enough) && !enough)
      log::warn("the machine has only " + std::to_string(bytes >> 20)
                + " MiB of memory left: no sandbox is opened until another has gone");
    return enough;
  }

  void open_waiting() {
    while (places_.size() < options_.max_sandboxes && !queue_.empty() && has_memory()) {
      auto next = std::move(queue_.front());
      queue_.pop_front();
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
        queue_.push_front(std::move(w));
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
      if (options_.max_sandboxes > 1)
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
    for (auto& w : queue_)
      w.promise.deliver(glue::to_caf({errc::cancelled, "the executor is stopping"}));
    queue_.clear();
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
  std::deque<waiting_open> queue_;
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

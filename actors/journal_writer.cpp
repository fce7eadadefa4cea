#include "actors/journal_writer.hpp"

#include "actors/caf_glue.hpp"
#include "runtime/journal/journal_thread.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <unordered_map>

namespace troupe {
namespace {

struct pending_append {
  std::shared_ptr<const journal_entry> entry;
  caf::typed_response_promise<journal_durable> promise;
};

class journal_writer_state {
public:
  journal_writer_state(caf::event_based_actor* self, journal_thread& thread)
    : self_{self}, thread_{thread} {}

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](journal_append& x) { return on_append(std::move(x.entry)); },
      [this](append_done& x) { on_done(x); },
      [this](const pause_over&) {
        waiting_for_room_ = false;
        hand_over();
      },
      [this](const stop&) {
        stopping_ = true;
        quit_when_idle();
      },
    };
  }

  static inline const char* name = "journal_writer";

private:
  caf::result<journal_durable> on_append(std::shared_ptr<const journal_entry> entry) {
    auto promise = self_->make_response_promise<journal_durable>();
    backlog_.push_back({std::move(entry), promise});
    hand_over();
    return promise;
  }

  /// Gives the thread what it has room for. The askers wait for their answers, so the backlog is
  /// bounded by the number of runs.
  void hand_over() {
    while (!waiting_for_room_ && !backlog_.empty()) {
      auto ticket = ++last_ticket_;
      auto taken = thread_.append(journal_entry{*backlog_.front().entry},
                                  [to = glue::weak_handle{self_}, ticket](result<void> outcome) {
                                    to.post(append_done{ticket, std::move(outcome)});
                                  });
      if (!taken && taken.error().code == errc::over_budget) {
        waiting_for_room_ = true;
        thread_.when_room([to = glue::weak_handle{self_}] { to.post(pause_over{}); });
        return;
      }
      auto next = std::move(backlog_.front());
      backlog_.pop_front();
      if (taken)
        open_[ticket] = std::move(next.promise);
      else
        next.promise.deliver(glue::to_caf(taken.error()));
    }
    quit_when_idle();
  }

  void on_done(append_done& x) {
    auto node = open_.extract(x.ticket);
    if (node.empty())
      return;
    if (x.outcome)
      node.mapped().deliver(journal_durable{});
    else
      node.mapped().deliver(glue::to_caf(x.outcome.error()));
    quit_when_idle();
  }

  void quit_when_idle() {
    if (stopping_ && open_.empty() && backlog_.empty())
      self_->quit();
  }

  caf::event_based_actor* self_;
  journal_thread& thread_;
  std::deque<pending_append> backlog_;
  std::unordered_map<std::uint64_t, caf::typed_response_promise<journal_durable>> open_;
  std::uint64_t last_ticket_ = 0;
  bool waiting_for_room_ = false;
  bool stopping_ = false;
};

}  // namespace

caf::actor spawn_journal_writer(caf::actor_system& sys, journal_thread& thread) {
  return sys.spawn<caf::stateful_actor<journal_writer_state>>(std::ref(thread));
}

}  // namespace troupe

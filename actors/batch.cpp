#include "actors/batch.hpp"

#include "actors/caf_glue.hpp"
#include "actors/result_of.hpp"
#include "runtime/core/log.hpp"

#include <caf/stateful_actor.hpp>

#include <unordered_map>

namespace troupe {
namespace {

constexpr std::uint32_t crashes_allowed = 1;

struct running_item {
  batch_item item;
  caf::actor agent;
  std::int64_t started_at = 0;
  bool finished = false;  ///< its result is being written
};

class batch_state {
public:
  batch_state(caf::event_based_actor* self, batch_plan plan, caf::actor agents)
    : self_{self}, plan_{std::move(plan)}, agents_{std::move(agents)}, progress_{plan_.before},
      next_run_{plan_.first_run.value} {}

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    start_more();
    return {
      [this](const run_finished& x) { on_finished(x); },
      [this](const child_ended& x) { on_child_ended(x); },
      [this](const batch_stop&) {
        wind_down(batch_end::stopped);
        end_if_done();
      },
      [this](const batch_cancel& x) { cancel(batch_end::cancelled, x.reason); },
      [this](const stop&) { cancel(batch_end::cancelled, "troupe is stopping"); },
    };
  }

  static inline const char* name = "batch";

private:
  void start_more() {
    while (!winding_down_ && running_.size() < plan_.max_concurrency) {
      if (!again_.empty()) {
        auto item = std::move(again_.back());
        again_.pop_back();
        start(std::move(item));
      } else if (next_item_ < plan_.items.size()) {
        start(plan_.items[next_item_++]);
      } else {
        break;
      }
    }
    publish();
    end_if_done();
  }

  void start(batch_item item) {
    run_id run{next_run_++};
    auto [input, files] = plan_.input(item);
    agent_run own{run, item.sample, std::move(files), caf::actor{self_}, item.epoch};
    child_spec spec;
    spec.name = "run-" + to_string(run);
    spec.restart = restart_type::temporary;
    spec.start = [context = plan_.agent, own](caf::actor_system& sys) {
      return spawn_agent(sys, context, own);
    };
    running_[run] = {std::move(item), nullptr, wall_micros()};
    self_->request(agents_, caf::infinite, start_child{std::move(spec), caf::actor{self_}})
      .then([this, run, input = std::move(input)](
              child_started& x) mutable { on_started(run, x.child, std::move(input)); },
            [this](const caf::error& e) { on_agents_lost(glue::from_caf(e).detail); });
  }

  void on_started(run_id run, const caf::actor& agent, run_started input) {
    auto it = running_.find(run);
    if (it == running_.end())
      return;
    it->second.agent = agent;
    glue::post(agent, run_start{std::move(input)});
    if (cancelling_)
      glue::post(agent, run_cancel{cancel_reason_});
  }

  void on_finished(const run_finished& x) {
    auto it = running_.find(x.run);
    if (it == running_.end() || it->second.finished)
      return;
    it->second.finished = true;
    if (!x.journal_error.empty()) {
      on_journal_failure(x.run, x.journal_error);
      return;
    }
    if (x.end.end == run_end::cancelled) {  // no result: a resumed batch runs it again
      over(x.run);
      return;
    }
    if (x.end.end == run_end::budget && plan_.exhausted)
      if (auto why = plan_.exhausted(); !why.empty()) {  // likewise: with a larger budget
        budget_spent_ = std::move(why);
        wind_down(batch_end::budget);
        over(x.run);
        return;
      }
    auto result = make_result(it->second, x);
    if (plan_.score)
      plan_.score(it->second.item, result);
    write(x.run, std::move(result));
  }

  static run_result make_result(const running_item& r, const run_finished& x) {
    return result_of(x, r.item.sample, r.item.epoch, r.started_at);
  }

  void write(run_id run, run_result result) {
    if (!plan_.agent->journal) {
      count(result);
      over(run);
      return;
    }
    auto entry = std::make_shared<journal_entry>();
    entry->result = std::move(result);
    self_->request(plan_.agent->journal->get(), caf::infinite, journal_append{entry})
      .then(
        [this, run, entry](const journal_durable&) {
          count(*entry->result);
          over(run);
        },
        [this, run](const caf::error& e) { on_journal_failure(run, glue::from_caf(e).detail); });
  }

  void count(const run_result& r) {
    ++progress_.done;
    progress_.tokens += r.tokens;
    if (r.end != to_string(run_end::success))
      ++progress_.failed;
    if (r.score) {
      ++progress_.scored;
      progress_.score_sum += *r.score;
    }
  }

  void over(run_id run) {
    running_.erase(run);
    start_more();
  }

  void on_journal_failure(run_id run, const std::string& why) {
    if (journal_failure_.empty())
      journal_failure_ = why;
    cancel(batch_end::journal_failed, "the journal cannot be written");
    over(run);
  }

  // --- crashes
  // ------------------------------------------------------------------------------------

  /// A normal end without run_finished before it is that of an agent that was told to go.
  void on_child_ended(const child_ended& x) {
    run_id run{std::stoull(x.name.substr(std::string_view{"run-"}.size()))};
    auto it = running_.find(run);
    if (it == running_.end() || it->second.finished)
      return;
    if (x.how.normal)
      over(run);
    else
      on_crash(run, x.how.reason);
  }

  /// Without the agents' supervisor no run can start: the batch ends, and no sample is to blame.
  void on_agents_lost(const std::string& why) {
    log::error("no agent can be started: " + why);
    cancel(batch_end::cancelled, "no agent can be started");
    std::erase_if(running_, [](const auto& r) { return !r.second.agent; });
    end_if_done();
  }

  void on_crash(run_id run, const std::string& why) {
    auto it = running_.find(run);
    if (it == running_.end() || it->second.finished)
      return;
    glue::post(plan_.agent->model->get(), model_cancel{run});
    auto item = it->second.item;
    auto key = item.sample + "\n" + std::to_string(item.epoch);
    if (crashes_[key]++ < crashes_allowed && !winding_down_) {
      again_.push_back(std::move(item));
      over(run);
      return;
    }
    it->second.finished = true;
    run_finished dead;
    dead.run = run;
    dead.end.end = run_end::error;
    dead.end.error = "quarantined: this sample crashed its agent " + std::to_string(crashes_[key])
                     + " times, last: " + why;
    write(run, make_result(it->second, dead));
  }

  // --- the end
  // ------------------------------------------------------------------------------------

  void wind_down(batch_end how) {
    if (!winding_down_)
      end_ = how;
    winding_down_ = true;
  }

  void cancel(batch_end how, const std::string& reason) {
    if (std::exchange(cancelling_, true))
      return;
    winding_down_ = true;
    end_ = how;
    cancel_reason_ = reason;
    for (auto& [run, r] : running_)
      glue::post(r.agent, run_cancel{reason});
    end_if_done();
  }

  void end_if_done() {
    auto work_left = next_item_ < plan_.items.size() || !again_.empty();
    if (!running_.empty() || (work_left && !winding_down_) || over_)
      return;
    over_ = true;
    if (!work_left && end_ == batch_end::stopped)
      end_ = batch_end::completed;
    progress_.finished = true;
    publish();
    if (plan_.done)
      plan_.done({end_, end_ == batch_end::budget ? budget_spent_ : journal_failure_, progress_});
    self_->quit();
  }

  void publish() {
    progress_.running = running_.size();
    if (plan_.agent->hub)
      glue::post(plan_.agent->hub->get(), progress_);
  }

  caf::event_based_actor* self_;
  batch_plan plan_;
  caf::actor agents_;
  batch_progress progress_;
  std::uint64_t next_run_;
  std::size_t next_item_ = 0;
  std::vector<batch_item> again_;  // crashed once
  std::unordered_map<run_id, running_item> running_;
  std::unordered_map<std::string, std::uint32_t> crashes_;
  bool winding_down_ = false;
  bool cancelling_ = false;
  bool over_ = false;
  batch_end end_ = batch_end::completed;
  std::string cancel_reason_;
  std::string journal_failure_;
  std::string budget_spent_;
};

}  // namespace

std::string_view to_string(batch_end end) noexcept {
  switch (end) {
  case batch_end::completed:
    return "completed";
  case batch_end::stopped:
    return "stopped";
  case batch_end::cancelled:
    return "cancelled";
  case batch_end::budget:
    return "budget";
  case batch_end::journal_failed:
    return "journal_failed";
  }
  return "?";
}

caf::actor spawn_batch(caf::actor_system& sys, batch_plan plan, caf::actor agents) {
  return sys.spawn<caf::stateful_actor<batch_state>>(std::move(plan), std::move(agents));
}

}  // namespace troupe

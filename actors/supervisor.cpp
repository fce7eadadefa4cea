#include "actors/supervisor.hpp"

#include "actors/address.hpp"
#include "actors/caf_glue.hpp"
#include "runtime/core/overloaded.hpp"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

struct child {
  child_spec spec;
  caf::actor handle;  ///< null while it is down
  caf::actor notify;  ///< for children of start_child
  std::uint64_t generation = 0;
  std::uint64_t order = 0;  ///< start order
  timer_id overdue = 0;     ///< while it is being stopped
};

class supervisor_state {
public:
  supervisor_state(caf::event_based_actor* self, supervisor_options options, timers& clock)
    : self_{self}, options_{std::move(options)}, clock_{clock}, policy_{options_.restarts} {}

  /// A supervisor that is killed or throws leaves no orphans, as if its children were linked to it.
  ~supervisor_state() {
    for (auto& [key, c] : children_)
      if (c.handle)
        caf::anon_send_exit(c.handle, caf::exit_reason::user_shutdown);
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    for (auto& spec : options_.children)
      start(add(std::move(spec), nullptr));
    return {
      [this](start_child& x) { return on_start_child(x); },
      [this](const child_down& x) { on_down(x); },
      [this](const restart_due& x) { on_restart_due(x); },
      [this](const stop_overdue& x) { on_overdue(x); },
      [this](const stop&) {
        end(glue::to_caf({errc::cancelled, "stopped"}), true);
      },
    };
  }

  static inline const char* name = "supervisor";

private:
  child& add(child_spec spec, caf::actor notify) {
    auto key = spec.name;
    auto& c = children_[key];
    c.spec = std::move(spec);
    c.notify = std::move(notify);
    c.order = ++last_order_;
    return c;
  }

  caf::result<child_started> on_start_child(start_child& x) {
    if (ending_)
      return glue::to_caf({errc::cancelled, options_.name + " is stopping"});
    if (options_.how != strategy::simple_one_for_one && options_.how != strategy::one_for_one)
      return glue::to_caf({errc::invalid_argument, options_.name + " takes no children later"});
    if (children_.contains(x.spec.name))
      return glue::to_caf({errc::invalid_argument, "a child '" + x.spec.name + "' is there"});
    auto& c = add(std::move(x.spec), std::move(x.notify));
    auto name_of_child = c.spec.name;
    start(c);
    auto it = children_.find(name_of_child);
    if (it == children_.end() || !it->second.handle)
      return glue::to_caf({errc::unavailable, "'" + name_of_child + "' did not start"});
    return child_started{it->second.handle};
  }

  void start(child& c) {
    auto generation = ++c.generation;
    ending failed{false, "start gave no actor"};
    try {
      c.handle = c.spec.start(self_->system());
    } catch (const std::exception& e) {
      c.handle = nullptr;
      failed.reason = std::string{"start failed: "} + e.what();
    }
    if (c.spec.where)
      c.spec.where->set(c.handle);
    if (!c.handle) {
      // Through the mailbox, so that a stop request can get in between failing starts.
      glue::post(caf::actor{self_}, child_down{c.spec.name, generation, failed});
      return;
    }
    if (options_.how != strategy::simple_one_for_one)
      report(c.spec.name, "", "started");
    glue::watch(self_, c.handle, [child_name = c.spec.name, generation](const caf::error& why) {
      auto normal = glue::is_normal_exit(why);
      return child_down{
        child_name, generation, {normal, normal ? "normal" : glue::from_caf(why).detail}};
    });
  }

  void on_down(const child_down& x) {
    auto it = children_.find(x.name);
    if (it == children_.end() || it->second.generation != x.generation)
      return;  // a late notice about a child that was already replaced
    auto& c = it->second;
    c.handle = nullptr;
    if (c.spec.where)
      c.spec.where->set(nullptr);
    if (stopping_.contains(x.name)) {
      stopped(c, x.how.reason);
      return;
    }
    if (ending_)
      return;
    decide(c, x.how);
  }

  void decide(child& c, const ending& how) {
    std::visit(overloaded{
                 [&](const restart_after& r) { restart(c, how, r.delay); },
                 [&](forget) { drop(c, how); },
                 [&](const give_up& g) {
                   report(c.spec.name, how.reason, "gave up: " + g.why);
                   auto why = options_.name + " gave up on '" + c.spec.name + "' (" + how.reason
                              + "): " + g.why;
                   end(glue::to_caf({errc::unavailable, why}), false);
                 },
               },
               policy_.on_exit(c.spec.restart, how, clock_.now()));
  }

  void drop(child& c, const ending& how) {
    if (!how.normal || options_.how != strategy::simple_one_for_one)
      report(c.spec.name, how.reason, "forgotten");
    glue::post(c.notify, child_ended{c.spec.name, how});
    if (options_.how == strategy::simple_one_for_one)
      children_.erase(c.spec.name);
    else
      forgotten_.insert(c.spec.name);  // stays down, and is not started with the others
  }

  void restart(child& c, const ending& how, millis delay) {
    report(c.spec.name, how.reason, "restart after " + std::to_string(delay.count()) + " ms");
    if (options_.how != strategy::one_for_all && options_.how != strategy::rest_for_one) {
      glue::send_after(clock_, self_, delay, restart_due{c.spec.name});
      return;
    }
    group_delay_ = delay;
    if (options_.how == strategy::one_for_all)
      stop_where([](const child&) { return true; });
    else
      stop_where([order = c.order](const child& x) { return x.order > order; });
    after_stopping();
  }

  /// Queues the living children that fit for stopping, in reverse start order.
  template <class Pred>
  void stop_where(Pred fits) {
    for (auto& [key, c] : children_)
      if (c.handle && fits(c) && !stopping_.contains(key)) {
        stopping_.insert(key);
        stop_queue_.push_back(&c);
      }
    std::sort(stop_queue_.begin(), stop_queue_.end(),
              [](const child* a, const child* b) { return a->order < b->order; });
    stop_next();
  }

  /// One at a time, the next when the last has ended; the many children of simple_one_for_one
  /// have no order among themselves and are stopped together.
  void stop_next() {
    if (options_.how == strategy::simple_one_for_one) {
      for (auto* c : std::exchange(stop_queue_, {}))
        ask_to_stop(*c);
      return;
    }
    if (current_ || stop_queue_.empty())
      return;
    current_ = stop_queue_.back();
    stop_queue_.pop_back();
    if (!current_->handle) {  // it ended while it waited for its turn
      auto& c = *std::exchange(current_, nullptr);
      stopping_.erase(c.spec.name);
      stop_next();
      return;
    }
    ask_to_stop(*current_);
  }

  void ask_to_stop(child& c) {
    glue::post(c.handle, stop{});
    if (c.spec.shutdown >= millis{0})
      c.overdue =
        glue::send_after(clock_, self_, c.spec.shutdown, stop_overdue{c.spec.name, c.generation});
  }

  void on_overdue(const stop_overdue& x) {
    auto it = children_.find(x.name);
    if (it == children_.end() || it->second.generation != x.generation || !it->second.handle)
      return;
    report(x.name, "still there after its shutdown time", "killed");
    caf::anon_send_exit(it->second.handle, caf::exit_reason::kill);
  }

  void stopped(child& c, const std::string& reason) {
    if (c.overdue != 0)
      clock_.cancel(std::exchange(c.overdue, 0));
    report(c.spec.name, reason, "stopped");
    stopping_.erase(c.spec.name);
    if (options_.how == strategy::simple_one_for_one && ending_)
      glue::post(c.notify, child_ended{c.spec.name, {true, "stopped"}});
    if (current_ == &c)
      current_ = nullptr;
    else
      std::erase(stop_queue_, &c);
    stop_next();
    after_stopping();
  }

  void after_stopping() {
    if (!stopping_.empty())
      return;
    if (ending_)
      self_->quit(end_reason_);
    else if (group_delay_)
      glue::send_after(clock_, self_, *std::exchange(group_delay_, std::nullopt), restart_due{});
  }

  /// A named child was to be restarted alone; no name: the group that was stopped for a restart.
  void on_restart_due(const restart_due& x) {
    if (x.name.empty())
      start_missing();
    else if (auto it = children_.find(x.name); it != children_.end() && !ending_)
      if (!it->second.handle)
        start(it->second);
  }

  /// Starts, in their order, all children that are down and not forgotten.
  void start_missing() {
    if (ending_ || !stopping_.empty())
      return;
    std::vector<child*> down;
    for (auto& [key, c] : children_)
      if (!c.handle && !forgotten_.contains(key))
        down.push_back(&c);
    std::sort(down.begin(), down.end(),
              [](const child* a, const child* b) { return a->order < b->order; });
    for (auto* c : down)
      start(*c);
  }

  void end(caf::error reason, bool normal) {
    if (ending_)
      return;
    ending_ = true;
    end_reason_ = normal ? caf::error{} : std::move(reason);
    stop_where([](const child&) { return true; });
    after_stopping();
  }

  void report(const std::string& child_name, const std::string& reason, std::string decision) {
    if (options_.report)
      options_.report({options_.name, child_name, reason, std::move(decision)});
  }

  caf::event_based_actor* self_;
  supervisor_options options_;
  timers& clock_;
  restart_policy policy_;
  std::unordered_map<std::string, child> children_;  // node-based: pointers stay valid
  std::unordered_set<std::string> forgotten_;
  std::unordered_set<std::string> stopping_;
  std::vector<child*> stop_queue_;
  child* current_ = nullptr;
  std::uint64_t last_order_ = 0;
  std::optional<millis> group_delay_;  // of a restart that waits for others to stop
  bool ending_ = false;
  caf::error end_reason_;
};

}  // namespace

result<void> validate(const supervisor_options& options) {
  auto bad = [&](const std::string& what) {
    return fail(errc::invalid_argument, "supervisor '" + options.name + "': " + what);
  };
  if (options.name.empty())
    return bad("it has no name");
  if (options.how == strategy::simple_one_for_one && !options.children.empty())
    return bad("simple_one_for_one starts its children by start_child");
  std::unordered_set<std::string> names;
  for (const auto& c : options.children) {
    if (!c.start)
      return bad("child '" + c.name + "' cannot be started");
    if (!names.insert(c.name).second)
      return bad("two children are called '" + c.name + "'");
  }
  return {};
}

caf::actor spawn_supervisor(caf::actor_system& sys, supervisor_options options, timers& clock) {
  return sys.spawn<caf::stateful_actor<supervisor_state>>(std::move(options), std::ref(clock));
}

}  // namespace troupe

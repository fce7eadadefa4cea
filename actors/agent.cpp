#include "actors/agent.hpp"

#include "actors/caf_glue.hpp"
#include "runtime/agent/agent_machine.hpp"
#include "runtime/core/overloaded.hpp"

#include <caf/stateful_actor.hpp>

#include <optional>
#include <vector>

namespace troupe {
namespace {

using namespace std::chrono_literals;

// How long a restarting model client or executor pool is waited for, and how often it is asked.
constexpr millis ask_again_after{100};
constexpr std::uint32_t ask_again_limit = 100;

class agent_state {
public:
  agent_state(caf::event_based_actor* self, std::shared_ptr<const agent_context> context,
              agent_run run)
    : self_{self}, context_{std::move(context)}, run_{std::move(run)},
      machine_{context_->agent, context_->encode, context_->start, run_.run}, paused_{run_.paused},
      next_host_{run_.run.value} {}  // not all begin with the same one

  ~agent_state() {
    if (deadline_timer_ != 0)
      context_->clock->cancel(deadline_timer_);
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    return {
      [this](run_start& x) { on_start(std::move(x.input)); },
      [this](run_cancel& x) { apply(cancel_requested{std::move(x.reason)}); },
      [this](const stop&) { apply(cancel_requested{"troupe is stopping"}); },
      [this](const run_deadline&) { apply(deadline_passed{}); },
      [this](const run_gate& x) { on_gate(x.how); },
      [this](tool_wanted& x) { on_tool_wanted(std::move(x)); },
      [this](const output_seen& x) {
        publish("output", json{{"text", x.bytes}});
      },
      [this](const connection_seen& x) { on_connection(x.record); },
      [this](const model_seen& x) { show(x.pieces); },
    };
  }

  static inline const char* name = "agent";

private:
  // --- events in, commands out
  // --------------------------------------------------------------------

  void on_start(run_started input) {
    started_ = context_->clock->now();
    payer_ = context_->budget;
    if (payer_ && context_->run_budget.any())
      payer_ = std::make_shared<budget_account>(payer_, context_->run_budget, "the run");
    apply(std::move(input));
    if (auto until = machine_.deadline(); until != never)
      deadline_timer_ =
        glue::send_after(*context_->clock, self_, until - context_->clock->now(), run_deadline{});
  }

  /// One event at a time: the next waits until what this one says is durable.
  void apply(agent_event event) {
    if (committing_)
      waiting_.push_back(std::move(event));
    else
      fold(event);
  }

  void fold(const agent_event& event) {
    auto commands = machine_.on(event, context_->clock->now());
    if (commands.empty())
      return;
    auto keep = keeper();
    keep.add(std::string{kind_of(event)}, [&] { return payload_of(event); });
    for (const auto& c : commands)
      keep_command(keep, c);
    committing_ = true;
    commit(std::move(keep.entry), [this, commands = std::move(commands)]() mutable {
      committing_ = false;
      for (auto& c : commands)
        execute(std::move(c));
      fold_waiting();
    });
  }

  /// The event itself; its start also says which sample it is of, so that a trace finds it.
  [[nodiscard]] json payload_of(const agent_event& event) const {
    auto payload = to_json(event);
    if (std::holds_alternative<run_started>(event))
      payload["sample_id"] = run_.sample;
    return payload;
  }

  void fold_waiting() {
    while (!committing_ && !waiting_.empty()) {
      auto next = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      fold(next);
    }
  }

  void execute(agent_command c) {
    std::visit(overloaded{
                 [this](ask_model& x) { ask_or_hold(std::move(x)); },
                 [this](run_code& x) { run(std::move(x.code)); },
                 [](note&) {},
                 [this](abandon&) { abandon_effects(); },
                 [this](finish& x) { end(std::move(x)); },
                 [this](call_tool& x) { call(std::move(x), 0); },
                 [](await_more&) {},
               },
               c);
  }

  // --- the gate
  // -----------------------------------------------------------------------------------

  void ask_or_hold(ask_model x) {
    if (!paused_ || steps_ > 0) {
      steps_ -= paused_ ? 1 : 0;
      ask(std::move(x.request));
      return;
    }
    held_ = std::move(x);
    publish("paused", json{{"step", machine_.step()}});
  }

  void on_gate(run_pace how) {
    paused_ = how != run_pace::resume;
    steps_ = how == run_pace::step ? steps_ + 1 : 0;
    if (held_ && (!paused_ || steps_ > 0))
      ask_or_hold(*std::exchange(held_, std::nullopt));
  }

  // --- the model
  // ----------------------------------------------------------------------------------

  void ask(model_request request, std::uint32_t tries = 0) {
    ++effect_;
    asking_ = true;
    asked_ = context_->clock->now();
    request.draw = run_.draw;
    auto client = context_->model->get();
    if (!client) {
      ask_later(std::move(request), tries, "no model client is running");
      return;
    }
    open_ask_ = request;
    auto viewer = watched() ? caf::actor{self_} : caf::actor{};
    self_
      ->request(client, caf::infinite,
                model_ask{std::move(request), std::move(viewer), context_->job, payer_})
      .then(
        [this, mine = effect_](model_answer& x) {
          if (mine == effect_)
            on_model_answer(std::move(x));
        },
        [this, mine = effect_, tries](const caf::error& e) {
          if (mine == effect_)
            ask_later(std::move(open_ask_), tries, glue::from_caf(e).detail);
        });
  }

  /// The client has crashed or is being restarted: its supervisor decides, we ask again.
  void ask_later(model_request request, std::uint32_t tries, const std::string& why) {
    if (tries >= ask_again_limit) {
      on_model_answer({tl::unexpected(
        model_failure{failure_class::connect, "the model client is gone: " + why, {}, 0})});
      return;
    }
    auto mine = ++effect_;
    wait_then([this, mine, request = std::move(request), tries] {
      if (mine == effect_)
        ask(request, tries + 1);
    });
  }

  void show(const std::vector<model_delta>& pieces) {
    if (!asking_)
      return;  // of a call that was abandoned
    for (auto& piece : pieces) {
      if (piece.what == model_delta::kind::text)
        publish("reply", json{{"text", piece.text}});
      else if (piece.what == model_delta::kind::reasoning)
        publish("reasoning", json{{"text", piece.text}});
      else if (piece.what == model_delta::kind::restart)
        publish("reply_again", json::object());
    }
  }

  void on_model_answer(model_answer x) {
    asking_ = false;
    open_ask_ = {};  // its view of the transcript would make the next append copy it
    model_wait_ += std::chrono::duration_cast<micros>(context_->clock->now() - asked_);
    if (!x.outcome) {
      apply(model_failed{std::move(x.outcome.error())});
      return;
    }
    note_model(x.outcome->model);
    apply(model_replied{std::move(*x.outcome)});
  }

  /// A fallback may have answered some of the turns: all who did are named.
  void note_model(const std::string& who) {
    if (model_name_.empty() || who.empty()) {
      model_name_ += who;
      return;
    }
    auto all = ", " + model_name_ + ",";
    if (all.find(", " + who + ",") == std::string::npos)
      model_name_ += ", " + who;
  }

  // --- the sandbox
  // --------------------------------------------------------------------------------

  void run(snippet code) {
    ++effect_;
    if (box_)
      run_in_box(std::move(code));
    else
      open_box(std::move(code), 0);
  }

  void open_box(snippet code, std::uint32_t tries) {
    auto pool = context_->executor ? context_->executor->get() : caf::actor{};
    if (!context_->executor) {
      apply(sandbox_failed{"this runtime has no executor"});
      return;
    }
    if (!pool) {
      open_later(std::move(code), tries, {errc::unavailable, "no executor pool is running"});
      return;
    }
    auto spec = context_->sandbox;
    spec.files = run_.files;
    auto open_asked = context_->clock->now();
    self_->request(pool, caf::infinite, sandbox_open{run_.run, std::move(spec), caf::actor{self_}})
      .then(
        [this, mine = effect_, code, open_asked](sandbox_ready& x) mutable {
          if (mine != effect_) {  // cancelled meanwhile: nobody will use it
            glue::post(x.sandbox, stop{});
            return;
          }
          box_ = std::move(x.sandbox);
          ++sandboxes_;
          // Time spent waiting for a place is not the snippet's: its deadlines move with it.
          auto waited = context_->clock->now() - open_asked;
          code.soft_deadline = after(code.soft_deadline, waited);
          code.hard_deadline = after(code.hard_deadline, waited);
          run_in_box(std::move(code));
        },
        [this, mine = effect_, code, tries](const caf::error& e) {
          if (mine == effect_)
            open_later(code, tries, glue::from_caf(e));
        });
  }

  void open_later(snippet code, std::uint32_t tries, const error& why) {
    auto restarting = why.code == errc::unavailable && tries < ask_again_limit
                      && (!context_->executor->get() || why.detail.starts_with("the actor asked"));
    if (!restarting) {
      apply(sandbox_failed{why.detail});
      return;
    }
    auto mine = effect_;
    wait_then([this, mine, code = std::move(code), tries] {
      if (mine == effect_)
        open_box(code, tries + 1);
    });
  }

  void run_in_box(snippet code) {
    self_->request(box_, caf::infinite, snippet_run{std::move(code)})
      .then(
        [this, mine = effect_](snippet_answer& x) {
          if (mine == effect_)
            on_outcome(std::move(x.outcome));
        },
        [this, mine = effect_](const caf::error& e) {
          if (mine != effect_)
            return;
          snippet_outcome lost;
          lost.end = snippet_end::killed;
          lost.reason = "the sandbox is gone: " + glue::from_caf(e).detail;
          on_outcome(std::move(lost));
        });
  }

  void on_outcome(snippet_outcome o) {
    if (!lives_on(o))
      box_ = nullptr;  // it closes itself
    apply(snippet_done{std::move(o)});
  }

  void on_connection(const egress_record& r) {
    auto keep = keeper();
    keep.add("connection", [&] {
      return json{{"host", r.host},
                  {"port", r.port},
                  {"address", r.address},
                  {"verdict", to_string(r.verdict)},
                  {"reason", r.reason},
                  {"bytes_up", r.bytes_up},
                  {"bytes_down", r.bytes_down},
                  {"seconds", static_cast<double>(r.duration.count()) / 1e6}};
    });
    commit(std::move(keep.entry), [] {});
  }

  // --- tools
  // --------------------------------------------------------------------------------------------

  /// Calls that the loop itself makes: their answers are its events.
  void call(call_tool x, std::uint32_t tries) {
    if (machine_.finished())
      return;
    auto id = x.call;
    auto host = next_host();
    if (!host && tries < ask_again_limit) {  // being restarted: nothing has been carried out yet
      wait_then([this, x = std::move(x), tries] { call(x, tries + 1); });
      return;
    }
    ++tool_calls_;
    ask_host(host, id, x.tool, std::move(x.arguments), [this, id](result<json> outcome) {
      apply(tool_replied{id, std::move(outcome)});
    });
  }

  /// Calls from code: their answers go back in.
  void on_tool_wanted(tool_wanted x) {
    if (machine_.finished())
      return;
    ++tool_calls_;
    auto keep = keeper();
    keep_call(keep, x.call.id, x.call.tool, x.call.arguments);
    commit(std::move(keep.entry), [this, x = std::move(x)]() mutable {
      auto id = x.call.id;
      ask_host(next_host(), id, x.call.tool, std::move(x.call.arguments),
               [this, id, box = x.sandbox](result<json> outcome) {
                 on_tool_answer(box, {id, std::move(outcome)});
               });
    });
  }

  void on_tool_answer(const caf::actor& box, tool_answer answer) {
    auto keep = keeper();
    keep.add("tool_replied", [&] { return to_json(tool_replied{answer.id, answer.value}); });
    commit(std::move(keep.entry), [box, answer = std::move(answer)] { glue::post(box, answer); });
  }

  caf::actor next_host() {
    auto& all = context_->tool_hosts;
    return all.empty() ? caf::actor{} : all[next_host_++ % all.size()]->get();
  }

  template <class Then>
  void ask_host(const caf::actor& host, call_id id, const std::string& tool, json arguments,
                const Then& then) {
    tool_context how{run_.run, id, machine_.deadline()};
    self_->request(host, caf::infinite, tool_call{context_->tools, tool, std::move(arguments), how})
      .then([then](tool_answer& answer) { then(std::move(answer.value)); },
            [then](const caf::error& e) {
              then(fail(errc::unavailable, "the tool's host is gone, and whether the call was "
                                           "carried out is not known: "
                                             + glue::from_caf(e).detail));
            });
  }

  // --- the end
  // ------------------------------------------------------------------------------------

  void abandon_effects() {
    ++effect_;
    held_.reset();
    if (std::exchange(asking_, false))
      glue::post(context_->model->get(), model_cancel{run_.run});
    close_box();
  }

  void close_box() {
    if (auto box = std::exchange(box_, nullptr))
      glue::post(box, stop{});
  }

  /// With a network the sandbox is closed first: then all its connections have been told.
  void end(finish how) {
    if (!box_ || !context_->sandbox.network) {
      close_box();
      report(std::move(how));
      return;
    }
    auto shared = std::make_shared<finish>(std::move(how));
    self_->request(std::exchange(box_, nullptr), caf::infinite, sandbox_close{})
      .then([this, shared](const sandbox_closed&) { report(std::move(*shared)); },
            [this, shared](const caf::error&) { report(std::move(*shared)); });
  }

  void report(finish how) {
    run_finished done;
    done.run = run_.run;
    done.end = std::move(how);
    done.sandboxes = sandboxes_;
    done.tool_calls = tool_calls_;
    done.wall = std::chrono::duration_cast<micros>(context_->clock->now() - started_);
    done.model_wait = model_wait_;
    done.model = model_name_;
    done.journal_error = journal_error_;
    glue::post(run_.owner, std::move(done));
    self_->quit();
  }

  // --- what is kept and shown
  // ---------------------------------------------------------------------

  /// Collects events for one commit. The JSON is only made when somebody wants it.
  struct collector {
    agent_state& agent;
    bool wanted;
    std::shared_ptr<journal_entry> entry;

    template <class Make>
    void add(std::string kind, Make make) {
      if (!wanted)
        return;
      json payload = make();
      agent.publish(kind, payload);
      if (agent.context_->journal)
        entry->events.push_back(
          {agent.run_.run, ++agent.seq_, wall_micros(), std::move(kind), dump_json(payload)});
    }
  };

  collector keeper() {
    return {*this, context_->journal || watched(), std::make_shared<journal_entry>()};
  }

  static void keep_call(collector& keep, call_id id, const std::string& tool,
                        const json& arguments) {
    keep.add("tool_requested", [&] {
      return json{{"call", id.value}, {"tool", tool}, {"arguments", arguments}};
    });
  }

  static void keep_command(collector& keep, const agent_command& c) {
    std::visit(overloaded{
                 [&](const ask_model& x) {
                   keep.add("model_requested", [&] {
                     return json{{"turn", x.request.turn}, {"bytes", x.request.messages.size}};
                   });
                 },
                 [&](const note& x) { keep.add(x.kind, [&] { return x.payload; }); },
                 [&](const call_tool& x) { keep_call(keep, x.call, x.tool, x.arguments); },
                 [&](const finish& x) {
                   keep.add("run_ended", [&] {
                     json payload{{"end", to_string(x.end)}, {"turns", x.turns}};
                     if (x.answer)
                       payload["answer"] = x.answer->text;
                     if (!x.error.empty())
                       payload["error"] = x.error;
                     return payload;
                   });
                 },
                 [](const auto&) {},
               },
               c);
  }

  /// Runs `then` once the entry is durable; at once when nothing is kept.
  template <class Then>
  void commit(std::shared_ptr<journal_entry> entry, Then then) {
    if (!context_->journal || entry->events.empty())
      then();
    else
      append(std::move(entry), std::make_shared<Then>(std::move(then)), 0);
  }

  /// An entry may be sent again after a writer's crash: (run, seq) is written once.
  template <class Then>
  void append(const std::shared_ptr<const journal_entry>& entry, const std::shared_ptr<Then>& then,
              std::uint32_t tries) {
    self_->request(context_->journal->get(), caf::infinite, journal_append{entry})
      .then([then](const journal_durable&) { (*then)(); },
            [this, entry, then, tries](const caf::error& e) {
              auto why = glue::from_caf(e);
              if (why.detail.starts_with("the actor asked") && tries < ask_again_limit)
                wait_then([this, entry, then, tries] { append(entry, then, tries + 1); });
              else
                on_journal_failure(why);
            });
  }

  /// What cannot be written must not happen: the run ends here, and its sample is run again later.
  void on_journal_failure(const error& why) {
    if (!journal_error_.empty())
      return;
    journal_error_ = why.detail;
    abandon_effects();
    finish how;
    how.end = run_end::error;
    how.error = "the journal cannot be written: " + why.detail;
    end(std::move(how));
  }

  [[nodiscard]] bool all_watched() const {
    return context_->interest && context_->interest->events;
  }

  [[nodiscard]] bool watched() const { return run_.viewer || all_watched(); }

  void publish(const std::string& kind, const json& payload) {
    if (!watched())
      return;
    run_event what{run_.run, run_.sample, kind, payload};
    if (run_.viewer && !run_.viewer(what))
      run_.viewer = nullptr;
    if (context_->hub && all_watched())
      glue::post(context_->hub->get(), std::move(what));
  }

  /// Runs `fn` in this actor a little later. The actor may have ended by then: nothing happens.
  template <class F>
  void wait_then(F fn) {
    context_->clock->in(ask_again_after, [to = glue::weak_handle{self_}, fn = std::move(fn)] {
      to.post(caf::make_action(fn));
    });
  }

  caf::event_based_actor* self_;
  std::shared_ptr<const agent_context> context_;
  std::shared_ptr<budget_account> payer_;
  agent_run run_;
  agent_machine machine_;
  std::vector<agent_event> waiting_;  // rarely more than one; an empty deque takes 600 bytes
  bool committing_ = false;
  std::uint64_t effect_ = 0;  // the model call or snippet whose answer still counts
  bool asking_ = false;
  model_request open_ask_;
  std::optional<ask_model> held_;  // behind the gate
  bool paused_;
  std::uint32_t steps_ = 0;  // that may pass the gate though it is shut
  caf::actor box_;
  timer_id deadline_timer_ = 0;
  time_point started_{};
  time_point asked_{};
  micros model_wait_{0};
  std::string model_name_;
  std::string journal_error_;
  std::uint32_t seq_ = 0;
  std::uint32_t sandboxes_ = 0;
  std::uint32_t tool_calls_ = 0;
  std::size_t next_host_;
};

}  // namespace

caf::actor spawn_agent(caf::actor_system& sys, std::shared_ptr<const agent_context> context,
                       agent_run run) {
  return sys.spawn<caf::stateful_actor<agent_state>>(std::move(context), std::move(run));
}

}  // namespace troupe

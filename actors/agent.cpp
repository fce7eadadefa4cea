#include "actors/agent.hpp"

#include "actors/caf_glue.hpp"
#include "actors/child_runs.hpp"
#include "actors/hook_gate.hpp"
#include "runtime/agent/agent_machine.hpp"
#include "runtime/agent/managed_agent.hpp"
#include "runtime/core/overloaded.hpp"
#include "runtime/core/text.hpp"
#include "runtime/model/reply_json.hpp"

#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <functional>
#include <memory>
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
      next_host_{run_.run.value} {  // not all begin with the same one
    if (!context_->team.empty())
      children_ = std::make_unique<child_runs>(self_, context_);
    if (context_->hooks && !context_->hooks->empty())
      hooks_ = std::make_unique<hook_gate>(
        self_, context_->hooks,
        [this](const run_hook& hook, const hook_event& e, std::string_view did,
               const std::string& why) { note_hook(hook, e, did, why); });
  }

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
      [this](const run_finished& x) {
        if (children_)
          children_->on_finished(x);
      },
      [this](const child_ended& x) {
        if (children_)
          children_->on_ended(x);
      },
    };
  }

  static inline const char* name = "agent";

private:
  // --- events in, commands out
  // --------------------------------------------------------------------

  void on_start(run_started input) {
    started_ = context_->clock->now();
    payer_ = run_.manager ? run_.manager->payer : context_->budget;
    if (run_.manager)
      glue::watch(self_, run_.owner, [](const caf::error&) {
        return run_cancel{"the agent that called for it has ended"};
      });
    if (payer_ && context_->run_budget.any())
      payer_ = std::make_shared<budget_account>(payer_, context_->run_budget, "the run");
    apply(std::move(input));
    if (auto until = machine_.deadline(); until != never)
      deadline_timer_ =
        glue::send_after(*context_->clock, self_, until - context_->clock->now(), run_deadline{});
  }

  struct waiting_event {
    agent_event event;
    std::function<void()> then;  ///< once it is durable, or was ignored; may be empty
  };

  /// One event at a time: the next waits until what this one says is durable.
  void apply(agent_event event, std::function<void()> then = {}) {
    if (committing_)
      waiting_.push_back({std::move(event), std::move(then)});
    else
      fold({std::move(event), std::move(then)});
  }

  void fold(waiting_event w) {
    auto commands = machine_.on(w.event, context_->clock->now());
    if (commands.empty()) {
      if (w.then)
        w.then();
      return;
    }
    auto keep = keeper();
    keep.add(std::string{kind_of(w.event)}, [&] { return payload_of(w.event); });
    for (const auto& c : commands) {
      keep_command(keep, c);
      if (auto* x = std::get_if<note>(&c); x != nullptr && x->kind == "observation")
        tell_hooks(hook_point::after_step, [&] { return x->payload; });
    }
    committing_ = true;
    commit(std::move(keep.entry),
           [this, commands = std::move(commands), then = std::move(w.then)]() mutable {
             committing_ = false;
             for (auto& c : commands)
               execute(std::move(c));
             if (then)
               then();
             fold_waiting();
           });
  }

  /// The event itself; its start also says which sample it is of, or which call of a manager's, so
  /// that a trace finds it.
  [[nodiscard]] json payload_of(const agent_event& event) const {
    auto payload = to_json(event);
    if (!std::holds_alternative<run_started>(event))
      return payload;
    if (run_.manager)
      payload["manager"] = {{"run", run_.manager->run.value}, {"call", run_.manager->call.value}};
    else
      payload["sample_id"] = run_.sample;
    return payload;
  }

  void fold_waiting() {
    while (!committing_ && !waiting_.empty()) {
      auto next = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      fold(std::move(next));
    }
  }

  void execute(agent_command c) {
    std::visit(overloaded{
                 [this](ask_model& x) { ask_or_hold(std::move(x)); },
                 [this](run_code& x) { run_by_leave(std::move(x.code)); },
                 [](note&) {},
                 [this](abandon&) { abandon_effects(); },
                 [this](finish& x) { end(std::move(x)); },
                 [this](call_tool& x) { call_by_leave(std::move(x)); },
                 [](await_more&) {},
               },
               c);
  }

  // --- hooks
  // --------------------------------------------------------------------------------------

  [[nodiscard]] bool hooked(hook_point at) const { return hooks_ && hooks_->wants(at); }

  [[nodiscard]] hook_event at_hook(hook_point at, json what) const {
    if (!what.contains("step"))
      what["step"] = machine_.step();
    return {at, run_.run, context_->agent->options.name, std::move(what)};
  }

  /// Runs `then` with what the hooks say; at once when there is none of that point.
  template <class Then>
  void by_leave(hook_point at, json what, Then then) {
    if (hooked(at))
      hooks_->ask(at_hook(at, std::move(what)), std::move(then));
    else
      then(hook_verdict{});
  }

  /// `what` is only made when somebody hears it.
  template <class What>
  void tell_hooks(hook_point at, What what) const {
    if (hooked(at))
      hooks_->tell(at_hook(at, what()));
  }

  void note_hook(const run_hook& hook, const hook_event& e, std::string_view did,
                 const std::string& why) {
    auto keep = keeper();
    keep.add("hook", [&] {
      json out{{"hook", hook.name}, {"at", to_string(e.at)}, {"did", did}, {"why", to_utf8(why)}};
      if (auto call = e.what.find("call"); call != e.what.end())
        out["call"] = *call;
      return out;
    });
    commit(std::move(keep.entry), [] {});
  }

  void ask_by_leave(model_request request) {
    if (!hooked(hook_point::before_step) && !hooked(hook_point::before_model)) {
      ask(std::move(request));
      return;
    }
    asked_ = context_->clock->now();
    auto mine = ++effect_;
    by_leave(hook_point::before_step, json::object(),
             [this, mine, request = std::move(request)](const hook_verdict& v) mutable {
               if (mine != effect_)
                 return;
               if (v.vetoed)
                 refuse_ask(v.reason);
               else
                 ask_as_allowed(std::move(request));
             });
  }

  void ask_as_allowed(model_request request) {
    auto& s = *request.settings;
    json what{{"model", s.model}, {"extra_body", s.extra_body}};
    if (s.temperature)
      what["temperature"] = *s.temperature;
    if (s.max_output_tokens)
      what["max_output_tokens"] = *s.max_output_tokens;
    if (s.seed)
      what["seed"] = *s.seed;
    by_leave(hook_point::before_model, std::move(what),
             [this, mine = effect_, request = std::move(request)](const hook_verdict& v) mutable {
               if (mine != effect_)
                 return;
               if (v.vetoed) {
                 refuse_ask(v.reason);
                 return;
               }
               if (!v.changed.is_null())
                 request.settings = changed_settings(*request.settings, v.changed);
               ask(std::move(request));
             });
  }

  static std::shared_ptr<const model_settings> changed_settings(model_settings s,
                                                                const json& changed) {
    if (changed.contains("temperature"))
      s.temperature = changed["temperature"].get<double>();
    if (changed.contains("max_output_tokens"))
      s.max_output_tokens = changed["max_output_tokens"].get<std::uint32_t>();
    if (changed.contains("seed"))
      s.seed = changed["seed"].get<std::int64_t>();
    if (changed.contains("extra_body"))
      s.extra_body = changed["extra_body"];
    return std::make_shared<const model_settings>(std::move(s));
  }

  void refuse_ask(const std::string& why) {
    on_model_answer({tl::unexpected(
      model_failure{failure_class::cancelled, "a hook ended the run: " + to_utf8(why), {}, 0})});
  }

  void run_by_leave(snippet code) {
    if (!hooked(hook_point::before_code)) {
      run(std::move(code));
      return;
    }
    auto asked = context_->clock->now();
    json what{{"code", code.code}};
    by_leave(
      hook_point::before_code, std::move(what),
      [this, mine = ++effect_, asked, code = std::move(code)](const hook_verdict& v) mutable {
        if (mine != effect_)
          return;
        if (v.vetoed) {
          apply(snippet_done{not_run(v.reason)});
          return;
        }
        if (!v.changed.is_null())
          code.code = v.changed["code"].get<std::string>();
        delay(code, context_->clock->now() - asked);
        run(std::move(code));
      });
  }

  static snippet_outcome not_run(const std::string& why) {
    snippet_outcome o;
    o.end = snippet_end::raised;
    auto text = "the code was not run: " + to_utf8(why);
    o.error = snippet_error{"PermissionError", text, 0, "PermissionError: " + text + "\n"};
    return o;
  }

  /// Time spent waiting is not the snippet's: its deadlines move with it.
  static void delay(snippet& code, steady_clock::duration waited) {
    code.soft_deadline = after(code.soft_deadline, waited);
    code.hard_deadline = after(code.hard_deadline, waited);
  }

  static json call_shown(call_id call, const std::string& tool, const json& arguments) {
    return {{"call", call.value}, {"tool", tool}, {"arguments", arguments}};
  }

  void call_by_leave(call_tool x) {
    auto shown = hooked(hook_point::before_tool) ? call_shown(x.call, x.tool, x.arguments) : json{};
    by_leave(hook_point::before_tool, std::move(shown),
             [this, x = std::move(x)](const hook_verdict& v) mutable {
               if (machine_.finished())
                 return;
               if (v.vetoed) {
                 settle_call({}, {x.call, fail(errc::denied, to_utf8(v.reason)), {}}, x.tool);
                 return;
               }
               if (!v.changed.is_null())
                 x.arguments = v.changed["arguments"];
               call(std::move(x), 0);
             });
  }

  // --- the gate
  // -----------------------------------------------------------------------------------

  void ask_or_hold(ask_model x) {
    if (!paused_ || steps_ > 0) {
      steps_ -= paused_ ? 1 : 0;
      ask_by_leave(std::move(x.request));
      return;
    }
    held_ = std::make_unique<ask_model>(std::move(x));
    publish("paused", json{{"step", machine_.step()}});
  }

  void on_gate(run_pace how) {
    paused_ = how != run_pace::resume;
    steps_ = how == run_pace::step ? steps_ + 1 : 0;
    if (held_ && (!paused_ || steps_ > 0))
      ask_or_hold(*std::exchange(held_, nullptr));
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
                model_ask{std::move(request), std::move(viewer), job(), payer_})
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
    tell_hooks(hook_point::after_model, [&] {
      return x.outcome ? to_json(*x.outcome) : json{{"error", to_utf8(x.outcome.error().detail)}};
    });
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
    code_runs_ = true;
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
    self_
      ->request(pool, caf::infinite,
                sandbox_open{run_.run, std::move(spec), caf::actor{self_}, context_->levels,
                             run_.manager != nullptr})
      .then(
        [this, mine = effect_, code, open_asked](sandbox_ready& x) mutable {
          if (mine != effect_) {  // cancelled meanwhile: nobody will use it
            glue::post(x.sandbox, stop{});
            return;
          }
          box_ = std::move(x.sandbox);
          ++sandboxes_;
          delay(code, context_->clock->now() - open_asked);
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
    code_runs_ = false;
    if (!lives_on(o))
      box_ = nullptr;  // it closes itself
    if (children_)
      children_->cancel("the code that called for it has ended");
    agent_event done{snippet_done{std::move(o)}};
    tell_hooks(hook_point::after_code, [&] { return to_json(done); });
    apply(std::move(done));
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
    ++tool_calls_;
    if (auto* who = member(x.tool)) {
      start_child_run(*who, x.call, x.arguments, {});
      return;
    }
    auto id = x.call;
    auto host = host_for(x.tool);
    if (!host && tries < ask_again_limit) {  // being restarted: nothing has been carried out yet
      --tool_calls_;
      wait_then([this, x = std::move(x), tries] { call(x, tries + 1); });
      return;
    }
    ask_host(host, id, x.tool, std::move(x.arguments),
             [this, id, tool = x.tool](result<json> outcome) {
               settle_call({}, {id, std::move(outcome), {}}, tool);
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
      auto shown = hooked(hook_point::before_tool)
                     ? call_shown(x.call.id, x.call.tool, x.call.arguments)
                     : json{};
      by_leave(hook_point::before_tool, std::move(shown),
               [this, x = std::move(x)](const hook_verdict& v) mutable {
                 if (v.vetoed) {
                   settle_call(x.sandbox, {x.call.id, fail(errc::denied, to_utf8(v.reason)), {}},
                               x.call.tool);
                   return;
                 }
                 if (!v.changed.is_null())
                   x.call.arguments = v.changed["arguments"];
                 call_for_code(std::move(x));
               });
    });
  }

  void call_for_code(tool_wanted x) {
    auto id = x.call.id;
    if (auto* who = member(x.call.tool)) {
      start_child_run(*who, id, x.call.arguments, x.sandbox);
      return;
    }
    ask_host(host_for(x.call.tool), id, x.call.tool, std::move(x.call.arguments),
             [this, id, box = x.sandbox, tool = x.call.tool](result<json> outcome) {
               settle_call(box, {id, std::move(outcome), {}}, tool);
             });
  }

  void on_tool_answer(const caf::actor& box, tool_answer answer) {
    auto keep = keeper();
    keep.add("tool_replied", [&] { return to_json(tool_replied{answer.id, answer.value}); });
    commit(std::move(keep.entry), [box, answer = std::move(answer)] { glue::post(box, answer); });
  }

  // --- managed agents
  // -------------------------------------------------------------------------------------

  [[nodiscard]] const managed_agent* member(const std::string& tool) const {
    return children_ ? children_->find(tool) : nullptr;
  }

  /// Its outcome is an event of this run's loop, which takes what it has cost. With `box`, the code
  /// in there gets it too.
  void start_child_run(const managed_agent& who, call_id call, const json& arguments,
                       caf::actor box) {
    auto fitted = who.arguments->call(who.tool.name, arguments, {run_.run, call});
    if (!fitted) {
      settle_call(box, {call, fail(fitted.error()), {}}, who.tool.name);
      return;
    }
    auto run = context_->numbers->take();
    auto keep = keeper();
    keep.add("child_started", [&] {
      return json{{"call", call.value}, {"agent", who.tool.name}, {"run", run.value}};
    });
    commit(std::move(keep.entry), [this, &who, run, call, box = std::move(box),
                                   task = managed_task(*who.agent->agent, *fitted)]() mutable {
      // Nobody waits for it any more when the code that called has ended meanwhile.
      if (!machine_.finished() && (!box || code_runs_))
        children_->begin(
          who, child_run(run, call), std::move(task), time_left(),
          [this, &who, call, box](result<json> outcome, const run_finished& end) {
            on_child_end(box, {call, std::move(outcome), usage_of(end.end)}, who.tool.name, end);
          });
    });
  }

  [[nodiscard]] agent_run child_run(run_id run, call_id call) const {
    agent_run own{run, run_.sample, {}, caf::actor{self_}, run_.draw, run_.viewer};
    own.manager = std::make_shared<const managed_by>(
      managed_by{run_.run, call, run_.manager ? run_.manager->depth + 1 : 1, payer_, job()});
    return own;
  }

  [[nodiscard]] job_share job() const { return run_.manager ? run_.manager->job : context_->job; }

  /// Of a run with a deadline at least 1 ms, 0 means none.
  [[nodiscard]] millis time_left() const {
    auto until = machine_.deadline();
    if (until == never)
      return millis{0};
    auto left = std::chrono::duration_cast<millis>(until - context_->clock->now());
    return std::max(left, millis{1});
  }

  void on_child_end(const caf::actor& box, tool_replied reply, const std::string& tool,
                    const run_finished& end) {
    sandboxes_ += end.sandboxes;
    tool_calls_ += end.tool_calls;
    note_model(end.model);
    if (ending_) {  // the loop has ended: what it cost is told with its end
      *ending_ += *reply.used;
      if (!children_->any())
        end_now(*std::exchange(ending_, nullptr));
      return;
    }
    settle_call(box, std::move(reply), tool);
  }

  /// A call has ended: the loop's own, or one of the code's in `box`.
  void settle_call(const caf::actor& box, tool_replied reply, const std::string& tool) {
    tell_hooks(hook_point::after_tool, [&] {
      json what{{"call", reply.call.value}, {"tool", tool}};
      if (reply.outcome)
        what["value"] = *reply.outcome;
      else
        what["error"] = to_utf8(reply.outcome.error().detail);
      return what;
    });
    if (!box) {
      apply(std::move(reply));
      return;
    }
    tool_answer answer{reply.call, reply.outcome};
    if (!reply.used) {
      on_tool_answer(box, std::move(answer));
      return;
    }
    apply(std::move(reply), [box, answer = std::move(answer)] { glue::post(box, answer); });
  }

  caf::actor host_for(const std::string& tool) {
    if (auto served = context_->served.find(tool); served != context_->served.end())
      return served->second->get();
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
    if (children_)
      children_->cancel("the agent that called for it was ended");
    held_.reset();
    if (std::exchange(asking_, false))
      glue::post(context_->model->get(), model_cancel{run_.run});
    close_box();
  }

  void close_box() {
    if (auto box = std::exchange(box_, nullptr))
      glue::post(box, stop{});
  }

  /// Managed agents that still run are ended first, and what they cost is counted.
  void end(finish how) {
    if (!children_ || !children_->any()) {
      end_now(std::move(how));
      return;
    }
    close_box();
    ending_ = std::make_unique<finish>(std::move(how));
    children_->cancel("the agent that called for it has ended");
  }

  /// With a network the sandbox is closed first: then all its connections have been told.
  void end_now(finish how) {
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
    tell_hooks(hook_point::run_ended, [&] {
      json what{{"end", to_string(how.end)}, {"error", how.error}};
      what["answer"] = how.answer ? to_plain(how.answer->tagged) : json{};
      return what;
    });
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
    run_event what{run_.run, run_.sample, kind, payload, ++shown_, context_->agent->options.name};
    if (run_.manager) {
      what.depth = run_.manager->depth;
      what.manager = run_.manager->run;
    }
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
  std::unique_ptr<hook_gate> hooks_;      // null: nobody is asked
  std::unique_ptr<child_runs> children_;  // null: there is nobody to call
  std::unique_ptr<finish> ending_;        // while they end
  std::vector<waiting_event> waiting_;    // rarely more than one; an empty deque takes 600 bytes
  bool committing_ = false;
  std::uint64_t effect_ = 0;  // the model call or snippet whose answer still counts
  bool asking_ = false;
  bool code_runs_ = false;
  model_request open_ask_;
  std::unique_ptr<ask_model> held_;  // behind the gate
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
  std::uint64_t shown_ = 0;
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

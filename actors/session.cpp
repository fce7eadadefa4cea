#include "actors/session.hpp"

#include "actors/caf_glue.hpp"
#include "actors/messages.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>

namespace troupe {
namespace {

using answer_promise = caf::typed_response_promise<tool_answer>;

constexpr std::size_t user = SIZE_MAX;  // in the place of a member

/// Who waits for the answer to a letter.
struct obligation {
  std::size_t asker = user;
  call_id call{};
  std::optional<answer_promise> reply{};  ///< nothing: the user
};

struct letter {
  std::size_t from = user;
  std::string kind{};  ///< task, message, question, handed, topic
  std::string text{};
  std::optional<obligation> owed{};
};

struct member_state {
  std::deque<letter> mailbox;
  std::vector<chat_message> memory;
  std::optional<letter> current;
  std::string current_task;
  run_id run{};
  caf::actor agent;
};

class session_state {
public:
  session_state(caf::event_based_actor* self, session_plan plan, agent_run own,
                std::shared_ptr<address> agents)
    : self_{self}, plan_{std::move(plan)}, own_{std::move(own)}, agents_{std::move(agents)},
      members_(plan_.members.size()) {
    for (auto& m : plan_.members) {
      auto fitting = std::make_shared<tool_set>();
      for (auto& spec : session_tools(cards(), m.card.name))
        static_cast<void>(fitting->add({spec, [](const json& arguments, const tool_context&) {
                                          return result<json>{arguments};
                                        }}));
      fitting_.push_back(std::move(fitting));
    }
  }

  ~session_state() {
    if (timer_ != 0)
      any().clock->cancel(timer_);
  }

  caf::behavior make_behavior() {
    glue::house_rules(self_);
    begun_ = any().clock->now();
    return {
      [this](run_start& x) { on_start(std::move(x.input.task)); },
      [this](tool_call& x) { return on_call(x); },
      [this](const run_finished& x) { on_finished(x); },
      [this](const child_ended& x) { on_child_ended(x); },
      [this](const run_gate& x) { on_gate(x); },
      [this](const run_deadline&) { end(run_end::deadline, "the session's time was up"); },
      [this](const run_cancel& x) { end(run_end::cancelled, x.reason); },
      [this](const stop&) { end(run_end::cancelled, "troupe is stopping"); },
    };
  }

  static inline const char* name = "session";

private:
  void on_start(std::string task) {
    if (over_)
      return;
    begun_ = any().clock->now();
    if (plan_.time > millis{0})
      timer_ = glue::send_after(*any().clock, self_, plan_.time, run_deadline{});
    keep("run_started", {{"task", task}, {"sample_id", own_.sample}, {"entry", plan_.entry}});
    deliver(index_of(plan_.entry), {user, "task", std::move(task), obligation{}});
  }

  /// Those that begin later begin behind it.
  void on_gate(const run_gate& x) {
    own_.paused = x.how != run_pace::resume;
    for (auto& m : members_)
      if (m.agent)
        glue::post(m.agent, run_gate{m.run, x.how});
  }

  [[nodiscard]] const agent_context& any() const { return *plan_.members.front().agent; }

  [[nodiscard]] std::vector<session_member_card> cards() const {
    std::vector<session_member_card> out;
    for (auto& m : plan_.members)
      out.push_back(m.card);
    return out;
  }

  [[nodiscard]] std::size_t index_of(std::string_view of) const {
    auto at = std::ranges::find_if(plan_.members, [&](auto& m) { return m.card.name == of; });
    return static_cast<std::size_t>(at - plan_.members.begin());
  }

  [[nodiscard]] const std::string& name_of(std::size_t member) const {
    static const std::string of_user = "user";
    return member == user ? of_user : plan_.members[member].card.name;
  }

  // --- letters
  // ------------------------------------------------------------------------------------

  void deliver(std::size_t to, letter l) {
    keep("letter",
         {{"from", name_of(l.from)}, {"to", name_of(to)}, {"kind", l.kind}, {"text", l.text}});
    members_[to].mailbox.push_back(std::move(l));
    take_next(to);
  }

  void take_next(std::size_t who) {
    auto& m = members_[who];
    if (m.current || m.mailbox.empty() || over_)
      return;
    m.current = std::move(m.mailbox.front());
    m.mailbox.pop_front();
    m.current_task = told(*m.current);
    m.run = any().numbers->take();
    agent_run own{m.run,     own_.sample, own_.files, caf::actor{self_},
                  own_.draw, own_.viewer, own_.paused};
    own.manager = std::make_shared<const managed_by>(managed_by{
      own_.run, call_id{}, 1, plan_.members[who].agent->budget, plan_.members[who].agent->job});
    keep("child_started", {{"agent", plan_.members[who].card.name}, {"run", m.run.value}});
    child_spec spec;
    spec.name = "run-" + to_string(m.run);
    spec.restart = restart_type::temporary;
    spec.start = [context = plan_.members[who].agent, own](caf::actor_system& sys) {
      return spawn_agent(sys, context, own);
    };
    self_->request(agents_->get(), caf::infinite, start_child{std::move(spec), caf::actor{self_}})
      .then([this, who, run = m.run](const child_started& x) { on_started(who, run, x.child); },
            [this, run = m.run](const caf::error& e) {
              run_finished none;
              none.run = run;
              none.end.error = "no agent can be started: " + glue::from_caf(e).detail;
              on_finished(none);
            });
  }

  [[nodiscard]] std::string told(const letter& l) const {
    if (l.from == user)
      return l.text;
    auto from = "'" + name_of(l.from) + "'";
    if (l.kind == "question")
      return from + " asks you, and gets your final answer:\n" + l.text;
    if (l.kind == "handed")
      return from + " hands this over to you. Whoever gave it to " + from
             + " gets your final answer:\n" + l.text;
    if (l.kind == "topic")
      return from + " has published this, and expects no answer:\n" + l.text;
    return "Message from " + from + ", who expects no answer:\n" + l.text;
  }

  void on_started(std::size_t who, run_id run, const caf::actor& agent) {
    auto& m = members_[who];
    if (m.run != run)
      return;
    m.agent = agent;
    glue::post(agent, run_start{{m.current_task, m.memory}});
    if (over_)
      glue::post(agent, run_cancel{"the session is over"});
  }

  // --- what agents ask of it
  // ----------------------------------------------------------------------

  caf::result<tool_answer> on_call(tool_call& x) {
    auto promise = self_->make_response_promise<tool_answer>();
    auto refuse = [&](errc code, std::string why) {
      promise.deliver(tool_answer{x.context.call, fail(code, std::move(why))});
      return promise;
    };
    auto from = running(x.context.run);
    if (from == user || over_)
      return refuse(errc::unavailable, "the session is over");
    auto fitted = fitting_[from]->call(x.name, x.arguments, x.context);
    if (!fitted)
      return refuse(fitted.error().code, fitted.error().detail);
    auto text = fitted->at("message").get<std::string>();
    if (x.name == "publish")
      return publish(from, fitted->at("topic").get<std::string>(), text, x.context.call, promise);
    auto to = index_of(fitted->at("to").get<std::string>());
    if (auto full = count_letters(1); !full.empty())
      return refuse(errc::over_budget, full);
    if (x.name == "send_message") {
      deliver(to, {from, "message", std::move(text), std::nullopt});
      promise.deliver(tool_answer{x.context.call, json("sent")});
    } else if (x.name == "ask_agent") {
      if (waits_for(to, from))
        return refuse(errc::denied,
                      "'" + name_of(to) + "' waits for your answer itself: answer, or ask another");
      deliver(to, {from, "question", std::move(text), obligation{from, x.context.call, promise}});
    } else {
      hand_on(from, to, std::move(text), x.context.call, promise);
    }
    return promise;
  }

  /// What is owed for the current letter goes on with it.
  void hand_on(std::size_t from, std::size_t to, std::string text, call_id call,
               answer_promise& promise) {
    auto& m = members_[from];
    if (m.current->owed && m.current->owed->asker != user
        && waits_for(to, m.current->owed->asker)) {
      promise.deliver(tool_answer{
        call, fail(errc::denied, "'" + name_of(to) + "' waits for this answer itself")});
      return;
    }
    deliver(to, {from, "handed", std::move(text), std::exchange(m.current->owed, std::nullopt)});
    promise.deliver(tool_answer{call, json("handed over to '" + name_of(to) + "'")});
  }

  caf::result<tool_answer> publish(std::size_t from, const std::string& topic,
                                   const std::string& text, call_id call, answer_promise& promise) {
    std::vector<std::size_t> readers;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (i != from && std::ranges::count(plan_.members[i].card.topics, topic) > 0)
        readers.push_back(i);
    if (auto full = count_letters(readers.size()); !full.empty()) {
      promise.deliver(tool_answer{call, fail(errc::over_budget, full)});
      return promise;
    }
    auto shown = "[" + topic + "] " + text;
    for (auto to : readers)
      deliver(to, {from, "topic", shown, std::nullopt});
    promise.deliver(tool_answer{call, json("sent to " + std::to_string(readers.size()))});
    return promise;
  }

  /// Why no more may be sent; empty: they are counted.
  std::string count_letters(std::size_t more) {
    if (letters_ + more > plan_.max_letters)
      return "the session's " + std::to_string(plan_.max_letters)
             + " letters are used up: answer with what you have";
    letters_ += static_cast<std::uint32_t>(more);
    return {};
  }

  /// The member whose run that is.
  [[nodiscard]] std::size_t running(run_id run) const {
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (members_[i].current && members_[i].run == run)
        return i;
    return user;
  }

  /// True when `who` is `whom`, or waits for it, maybe through others: every letter that `who` has
  /// asked about lies with the member that must answer it.
  [[nodiscard]] bool waits_for(std::size_t who, std::size_t whom) const {
    std::vector<std::size_t> seen{who};
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == whom)
        return true;
      for (std::size_t m = 0; m < members_.size(); ++m)
        if (owes(m, seen[i]) && std::ranges::count(seen, m) == 0)
          seen.push_back(m);
    }
    return false;
  }

  [[nodiscard]] bool owes(std::size_t member, std::size_t asker) const {
    auto is = [&](const letter& l) { return l.owed && l.owed->asker == asker; };
    auto& m = members_[member];
    return (m.current && is(*m.current)) || std::ranges::any_of(m.mailbox, is);
  }

  // --- ends of runs
  // -------------------------------------------------------------------------------

  void on_child_ended(const child_ended& x) {
    run_finished crashed;
    crashed.run = run_id{std::stoull(x.name.substr(std::string_view{"run-"}.size()))};
    crashed.end.error = "the agent crashed: " + x.how.reason;
    on_finished(crashed);  // else it is forgotten already
  }

  void on_finished(const run_finished& x) {
    auto who = running(x.run);
    if (who == user)
      return;
    auto& m = members_[who];
    auto l = std::move(*std::exchange(m.current, std::nullopt));
    m.agent = nullptr;
    add(x);
    if (over_) {
      drop(l);
      finish_if_idle();
      return;
    }
    remember(m, x.end);
    if (l.owed)
      settle(who, *l.owed, x);
    take_next(who);
    finish_if_idle();
  }

  void add(const run_finished& x) {
    total_.end += usage_of(x.end);
    total_.end.turns += x.end.turns;
    total_.end.snippets += x.end.snippets;
    total_.end.snippet_failures += x.end.snippet_failures;
    total_.sandboxes += x.sandboxes;
    total_.tool_calls += x.tool_calls;
    total_.model_wait += x.model_wait;
    if (total_.model.find(x.model) == std::string::npos)
      total_.model += (total_.model.empty() ? "" : ", ") + x.model;
    if (total_.journal_error.empty())
      total_.journal_error = x.journal_error;
  }

  void remember(member_state& m, const struct finish& end) const {
    m.memory.push_back({role::user, std::move(m.current_task), {}, {}});
    m.memory.push_back(
      {role::assistant,
       end.answer ? end.answer->text : "(no answer: " + std::string{to_string(end.end)} + ")",
       {},
       {}});
    auto most = 2 * plan_.memory;
    if (m.memory.size() > most)
      m.memory.erase(m.memory.begin(), m.memory.end() - static_cast<std::ptrdiff_t>(most));
  }

  void settle(std::size_t who, obligation& owed, const run_finished& x) {
    if (!owed.reply) {
      answered_ = true;
      total_.end.end = x.end.end;
      total_.end.answer = x.end.answer;
      total_.end.error = x.end.error;
      end(x.end.end, x.end.error);
      return;
    }
    auto outcome = x.end.answer ? result<json>{to_plain(x.end.answer->tagged)}
                                : fail(errc::unavailable, "'" + name_of(who) + "' ended as "
                                                            + std::string{to_string(x.end.end)}
                                                            + ": " + x.end.error);
    owed.reply->deliver(tool_answer{owed.call, std::move(outcome)});
  }

  static void drop(letter& l) {
    if (l.owed && l.owed->reply)
      l.owed->reply->deliver(
        tool_answer{l.owed->call, fail(errc::cancelled, "the session is over")});
  }

  // --- the end
  // ------------------------------------------------------------------------------------

  void end(run_end how, const std::string& why) {
    if (std::exchange(over_, true))
      return;
    if (!answered_) {
      total_.end.end = how;
      total_.end.error = why;
    }
    for (auto& m : members_) {
      for (auto& l : m.mailbox)
        drop(l);
      m.mailbox.clear();
      if (m.current && m.agent)
        glue::post(m.agent, run_cancel{"the session is over"});
    }
    finish_if_idle();
  }

  void finish_if_idle() {
    if (told_ || std::ranges::any_of(members_, [](auto& m) { return m.current.has_value(); }))
      return;
    if (!over_ && std::ranges::any_of(members_, [](auto& m) { return !m.mailbox.empty(); }))
      return;
    told_ = true;
    keep("run_ended", {{"end", to_string(total_.end.end)},
                       {"turns", total_.end.turns},
                       {"letters", letters_},
                       {"error", total_.end.error}});
    total_.run = own_.run;
    total_.wall = std::chrono::duration_cast<micros>(any().clock->now() - begun_);
    glue::post(own_.owner, std::move(total_));
    self_->quit();
  }

  /// For the trace only: nothing waits until it is durable.
  void keep(std::string kind, const json& payload) {
    auto& c = any();
    run_event shown{own_.run, own_.sample, kind, payload, ++seq_, "session"};
    if (own_.viewer && !own_.viewer(shown))
      own_.viewer = nullptr;
    if (c.hub && c.interest && c.interest->events)
      glue::post(c.hub->get(), std::move(shown));
    if (!c.journal)
      return;
    auto entry = std::make_shared<journal_entry>();
    entry->events.push_back({own_.run, seq_, wall_micros(), std::move(kind), dump_json(payload)});
    self_
      ->request(c.journal->get(), caf::infinite,
                journal_append{std::shared_ptr<const journal_entry>{entry}})
      .then([](const journal_durable&) {},
            [this](const caf::error& e) {
              if (total_.journal_error.empty())
                total_.journal_error = glue::from_caf(e).detail;
            });
  }

  caf::event_based_actor* self_;
  session_plan plan_;
  agent_run own_;
  std::shared_ptr<address> agents_;
  std::vector<member_state> members_;
  std::vector<std::shared_ptr<tool_set>> fitting_;
  time_point begun_{};
  timer_id timer_ = 0;
  run_finished total_;
  std::uint32_t letters_ = 0;
  std::uint32_t seq_ = 0;
  bool answered_ = false;
  bool over_ = false;
  bool told_ = false;
};

}  // namespace

caf::actor spawn_session(caf::actor_system& sys, session_plan plan, agent_run own,
                         std::shared_ptr<address> agents) {
  auto where = plan.where;
  auto made = sys.spawn<caf::stateful_actor<session_state>>(std::move(plan), std::move(own),
                                                            std::move(agents));
  where->set(made);
  // The members hold this, as it holds them. Called at once if it has ended already.
  made->attach_functor([where](const caf::error&) { where->set(nullptr); });
  return made;
}

}  // namespace troupe

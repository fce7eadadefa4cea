// Agents with mailboxes: letters, questions, handing over, topics, and what bounds them.
#include "actors/session.hpp"
#include "tests/support/team_run.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using test::answer;
using test::call;

namespace {

std::string write(const std::string& tool, const std::string& to, const std::string& text) {
  return call(tool, {{"to", to}, {"message", text}});
}

using replies = std::map<std::string, std::vector<std::string>>;

struct session_run : test::run_fixture {
  /// What each member's model says, one after the other; with `again` the last for ever.
  session_run(std::vector<session_member_card> cards, replies says, bool again = false)
    : run_fixture{std::make_shared<test::scripted_endpoint>(
                    [this, again](const model_request& r) { return next(name_in(r), again); }),
                  [](const snippet&) { return std::nullopt; }},
      left{std::move(says)} {
    REQUIRE(validate(cards));
    for (auto& card : cards)
      plan.members.push_back({card, member(cards, card.name)});
    plan.where = where;
    plan.entry = cards.front().name;
  }

  std::string next(const std::string& who, bool again) {
    auto& mine = left[who];
    if (mine.empty())
      return "nothing more to say";
    auto line = mine.front();
    if (!again || mine.size() > 1)
      mine.erase(mine.begin());
    return line;
  }

  static std::string name_in(const model_request& r) {
    auto text = r.messages.text();
    auto at = text.find("You are <") + 9;
    return text.substr(at, text.find('>', at) - at);
  }

  std::shared_ptr<const agent_context> member(const std::vector<session_member_card>& cards,
                                              const std::string& name) {
    agent_options o;
    o.kind = agent_kind::tool_calling;
    o.calls = call_protocol::text;
    o.name = name;
    o.instructions = "You are <" + name + ">";
    o.max_steps = 4;
    o.prompts = shipped_prompts(o.kind);
    o.tools = tools->specs();
    auto c = std::make_shared<agent_context>(*context);
    for (auto& tool : session_tools(cards, name)) {
      c->served[tool.name] = where;
      o.tools.push_back(std::move(tool));
    }
    c->agent = prepare(std::move(o));
    c->start = react_loop::start_of(*c->agent, c->encode);
    return c;
  }

  void start() {
    auto owner = keep(sys.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {[this](run_finished& x) { ends.push_back(std::move(x)); }};
    }));
    session =
      keep(spawn_session(sys, plan, {context->numbers->take(), "s1", {}, owner}, agents_at));
    glue::post(session, run_start{{"Settle it."}});
    deliver();
  }

  const run_finished& end() {
    REQUIRE(ends.size() == 1);
    return ends.front();
  }

  [[nodiscard]] bool asked_with(const std::string& text) const {
    return std::ranges::any_of(model->requests,
                               [&](auto& r) { return r.find(text) != std::string::npos; });
  }

  [[nodiscard]] std::string letters() const {
    std::string out;
    for (auto& e : journal->events)
      if (e.kind == "letter") {
        auto p = json::parse(e.payload);
        out += string_or(p, "from") + ">" + string_or(p, "to") + " ";
      }
    return out;
  }

  replies left;
  session_plan plan;
  std::shared_ptr<address> where = std::make_shared<address>();
  caf::actor session;
  std::vector<run_finished> ends;
};

std::vector<session_member_card> three() {
  return {{"a", "The first.", {}}, {"b", "The second.", {"news"}}, {"c", "The third.", {"news"}}};
}

}  // namespace

TEST_CASE("an agent asks another, whose answer is the result of the call", "[session]") {
  session_run run{
    three(),
    {{"a", {write("ask_agent", "b", "How many?"), answer("It is 7")}}, {"b", {answer("7")}}}};
  run.start();
  CHECK(run.end().end.end == run_end::success);
  CHECK(run.end().end.answer->text == "It is 7");
  CHECK(run.asked_with("'a' asks you, and gets your final answer:\\nHow many?"));
  CHECK(run.end().end.tokens.total() == 45);
  CHECK(run.letters() == "user>a a>b ");
}

TEST_CASE("what is handed over is answered by whoever ends up with it", "[session]") {
  session_run run{three(),
                  {{"a", {write("hand_off", "b", "Yours now.")}},
                   {"b", {write("hand_off", "c", "And yours.")}},
                   {"c", {answer("done by c")}}}};
  run.start();
  CHECK(run.end().end.end == run_end::success);
  CHECK(run.end().end.answer->text == "done by c");
  CHECK(run.letters() == "user>a a>b b>c ");
}

TEST_CASE("a question that is handed over is answered to who asked it", "[session]") {
  session_run run{three(),
                  {{"a", {write("ask_agent", "b", "Q?"), answer("got it")}},
                   {"b", {write("hand_off", "c", "Q?")}},
                   {"c", {answer("42 says c")}}}};
  run.start();
  CHECK(run.end().end.answer->text == "got it");
  CHECK(run.asked_with("42 says c"));
}

TEST_CASE("a topic's readers get what is published, its writer goes on", "[session]") {
  session_run run{
    three(),
    {{"a", {call("publish", {{"topic", "news"}, {"message", "It rains."}}), answer("told")}},
     {"b", {answer("noted")}},
     {"c", {answer("noted")}}}};
  run.start();
  CHECK(run.end().end.answer->text == "told");
  CHECK(run.letters() == "user>a a>b a>c ");
}

TEST_CASE("an agent remembers its earlier letters", "[session]") {
  session_run run{
    three(),
    {{"a", {write("ask_agent", "b", "First?"), write("ask_agent", "b", "Second?"), answer("both")}},
     {"b", {answer("one"), answer("two")}}}};
  run.start();
  CHECK(run.end().end.end == run_end::success);
  auto& last_of_b =
    *std::find_if(run.model->requests.rbegin(), run.model->requests.rend(),
                  [](auto& r) { return r.find("You are <b>") != std::string::npos; });
  CHECK(last_of_b.find("First?") != std::string::npos);
  CHECK(last_of_b.find("one") != std::string::npos);
  CHECK(last_of_b.find("Second?") != std::string::npos);
}

TEST_CASE("agents that would wait for each other are told, and do not", "[session]") {
  session_run run{three(),
                  {{"a", {write("ask_agent", "b", "You?"), answer("fine")}},
                   {"b", {write("ask_agent", "c", "And you?"), answer("b's")}},
                   {"c", {write("ask_agent", "a", "No, you?"), answer("c's")}}}};
  run.start();
  CHECK(run.end().end.answer->text == "fine");
  CHECK(run.asked_with("waits for your answer itself"));
  CHECK(run.letters() == "user>a a>b b>c ");
}

TEST_CASE("a circle of letters ends with the letters", "[session]") {
  session_run run{
    {{"a", "", {}}, {"b", "", {}}},
    {{"a", {write("hand_off", "b", "Yours.")}}, {"b", {write("hand_off", "a", "No.")}}},
    true};
  run.plan.max_letters = 10;
  run.start();
  CHECK(run.end().end.end == run_end::stuck);
  CHECK(run.asked_with("10 letters are used up"));
  CHECK(std::ranges::count(run.letters(), '>') == 11);
}

TEST_CASE("the answer ends what the others are still doing", "[session]") {
  session_run run{three(), {{"a", {write("send_message", "b", "Begin."), answer("enough")}}}};
  int asked = 0;
  run.model->before = [&](const model_request& r) {
    run.model->hang = session_run::name_in(r) == "b";
    ++asked;
  };
  run.start();
  CHECK(run.end().end.end == run_end::success);
  CHECK(run.end().end.answer->text == "enough");
  CHECK(run.model->cancels == 1);
}

TEST_CASE("a session ends at its time, and when it is cancelled", "[session]") {
  for (auto by_time : {true, false}) {
    session_run run{three(), {}};
    run.model->hang = true;
    run.plan.time = by_time ? 10s : 0s;
    run.start();
    CHECK(run.ends.empty());
    if (by_time)
      run.advance(10s);
    else
      glue::post(run.session, run_cancel{"enough"});
    run.deliver();
    CHECK(run.end().end.end == (by_time ? run_end::deadline : run_end::cancelled));
    CHECK(run.model->cancels == 1);
  }
}

TEST_CASE("a letter that cannot be answered is an error to who asked", "[session]") {
  session_run run{three(), {{"a", {write("ask_agent", "b", "Q?"), answer("alone then")}}}};
  run.start();  // b says nothing that is a call, up to its last step
  CHECK(run.end().end.answer->text == "alone then");
}

TEST_CASE("a session's members are at least two, and have names of their own", "[session]") {
  CHECK_FALSE(validate(std::vector<session_member_card>{{"a", "", {}}}));
  CHECK_FALSE(validate(std::vector<session_member_card>{{"a", "", {}}, {"a", "", {}}}));
  CHECK_FALSE(validate(std::vector<session_member_card>{{"a", "", {}}, {"b c", "", {}}}));
  CHECK(session_tools({{"a", "", {}}, {"b", "", {}}}, "a").size() == 3);
  CHECK(session_tools(three(), "a").size() == 4);
}

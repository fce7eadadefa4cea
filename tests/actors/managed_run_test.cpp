// Agents that call agents, driven by their actors: from tool calls and from code.
#include "runtime/agent/managed_agent.hpp"
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

std::string call(const std::string& tool, const json& arguments) {
  return dump_json({{"name", tool}, {"arguments", arguments}});
}

std::string answer(const std::string& text) {
  return call("final_answer", {{"answer", text}});
}

std::string code(const std::string& text) {
  return "<code>\n" + text + "\n</code>";
}

agent_options member(const std::string& name) {
  agent_options o;
  o.kind = agent_kind::tool_calling;
  o.calls = call_protocol::text;
  o.name = name;
  o.description = "Knows about " + name + ".";
  o.max_steps = 3;
  return o;
}

agent_options manager_of(std::vector<agent_options> team, agent_kind kind) {
  auto o = member("manager");
  o.kind = kind;
  for (auto& agent : team)
    o.managed.push_back(managed_agent_tool(agent));
  return o;
}

/// What each agent's model says next.
using script = std::function<std::string(const std::string& who)>;

struct team_run : test::run_fixture {
  team_run(script says, std::vector<agent_options> team, agent_kind kind = agent_kind::tool_calling,
           test::snippet_script code = hang)
    : run_fixture{std::make_shared<test::scripted_endpoint>(
                    [says = std::move(says)](const model_request& r) { return says(name_in(r)); }),
                  std::move(code), manager_of(team, kind)} {
    std::tie(owner, ends) = collector<run_finished>();
    auto top = std::make_shared<agent_context>(*context);
    for (auto& options : team)
      top->team.push_back(member_of(std::move(options)));
    top->levels = 1;
    context = top;
  }

  static std::optional<snippet_outcome> hang(const snippet&) { return std::nullopt; }

  /// A managed agent's task begins with its name.
  static std::string name_in(const model_request& r) {
    auto text = r.messages.text();
    auto at = text.rfind("You are '");
    if (at == std::string::npos)
      return "manager";
    at += 9;
    return text.substr(at, text.find('\'', at) - at);
  }

  managed_agent member_of(agent_options options) {
    options.prompts = shipped_prompts(options.kind);
    options.tools = tools->specs();
    auto c = std::make_shared<agent_context>(*context);
    c->agent = prepare(std::move(options));
    c->start = react_loop::start_of(*c->agent, c->encode);
    auto made = make_managed_agent(std::move(c));
    REQUIRE(made);
    return *made;
  }

  void start() {
    agent = spawn_agent(sys, context, {run_id{1000}, "s1", {}, owner});
    glue::post(agent, run_start{{"Find it out.", {}}});
    deliver();
  }

  const finish& end() {
    REQUIRE(ends->size() == 1);
    return ends->front().end;
  }

  /// The observations that the manager's model was given, in order.
  [[nodiscard]] std::string observations() const {
    std::string out;
    for (auto& e : journal->events)
      if (e.kind == "observation" && e.run == run_id{1000})
        out += string_or(json::parse(e.payload), "text") + "\n";
    return out;
  }

  caf::actor owner;
  std::shared_ptr<std::vector<run_finished>> ends;
  caf::actor agent;
};

/// Says its lines one after the other, for each agent by itself.
script lines(std::map<std::string, std::vector<std::string>> by_name) {
  auto left = std::make_shared<std::map<std::string, std::vector<std::string>>>(by_name);
  return [left](const std::string& who) {
    auto& mine = (*left)[who];
    if (mine.empty())
      return std::string{"nothing more to say"};
    auto next = mine.front();
    mine.erase(mine.begin());
    return next;
  };
}

}  // namespace

TEST_CASE("a manager gets its agent's report, and pays for it", "[managed_run]") {
  team_run run{lines({{"manager", {call("search", {{"task", "Look up X."}}), answer("X is 4")}},
                      {"search", {answer("4")}}}),
               {member("search")}};
  run.start();
  CHECK(run.end().end == run_end::success);
  CHECK(run.end().answer->text == "X is 4");
  CHECK(run.end().turns == 2);
  CHECK(run.end().tokens.total() == 45);  // 15 a call: two of the manager's, one of search's
  CHECK(run.end().model_attempts == 3);
  CHECK(run.ends->front().tool_calls == 3);
  CHECK(run.observations().find("Report of 'search':\n4") != std::string::npos);
}

TEST_CASE("a child's events stand under its own run, and name the call", "[managed_run]") {
  team_run run{lines({{"manager", {call("search", {{"task", "Look up X."}}), answer("ok")}},
                      {"search", {answer("4")}}}),
               {member("search")}};
  run.start();
  std::map<std::uint64_t, std::string> kinds;
  json child_started, started;
  for (auto& e : run.journal->events) {
    kinds[e.run.value] += e.kind + " ";
    if (e.kind == "child_started")
      child_started = json::parse(e.payload);
    if (e.kind == "run_started" && e.run != run_id{1000})
      started = json::parse(e.payload);
  }
  CHECK(kinds.size() == 2);
  CHECK(child_started == json{{"call", 1}, {"agent", "search"}, {"run", 1}});
  CHECK(started["manager"] == json{{"run", 1000}, {"call", 1}});
  CHECK_FALSE(started.contains("sample_id"));
  CHECK(kinds[1].starts_with("run_started model_requested model_replied action"));
  CHECK(kinds[1].ends_with("run_ended "));
}

TEST_CASE("each call is a run of its own, with a memory of its own", "[managed_run]") {
  auto two = json::array();
  two.push_back({{"name", "search"}, {"arguments", {{"task", "Look up A."}}}});
  two.push_back({{"name", "search"}, {"arguments", {{"task", "Look up B."}}}});
  team_run run{lines({{"manager", {dump_json(two), answer("both")}},
                      {"search", {answer("one"), answer("two")}}}),
               {member("search")}};
  run.start();
  CHECK(run.end().end == run_end::success);
  int of_a = 0, of_b = 0;
  for (auto& request : run.model->requests) {
    auto child = request.find("You are 'search'") != std::string::npos;
    of_a += child && request.find("Look up A.") != std::string::npos;
    of_b += child && request.find("Look up B.") != std::string::npos;
    CHECK_FALSE((child && request.find("Look up A.") != std::string::npos
                 && request.find("Look up B.") != std::string::npos));
  }
  CHECK(of_a == 1);
  CHECK(of_b == 1);
}

TEST_CASE("a child that fails is an error to its manager, which goes on", "[managed_run]") {
  auto limited = member("search");
  limited.token_budget = 1;
  team_run run{lines({{"manager", {call("search", {{"task", "Look up X."}}), answer("without")}},
                      {"search", {"{}", answer("late")}}}),
               {limited}};
  run.start();
  CHECK(run.end().end == run_end::success);
  CHECK(run.observations().find("'search' ended as budget") != std::string::npos);
}

TEST_CASE("a forced answer is told as one", "[managed_run]") {
  auto short_of_steps = member("search");
  short_of_steps.max_steps = 1;
  team_run run{lines({{"manager", {call("search", {{"task", "Look up X."}}), answer("ok")}},
                      {"search", {"let me think", "perhaps 4"}}}),
               {short_of_steps}};
  run.start();
  CHECK(run.observations().find("'search' ended as max_steps") != std::string::npos);
  CHECK(run.observations().find("perhaps 4") != std::string::npos);
}

TEST_CASE("arguments that do not fit never start a run", "[managed_run]") {
  team_run run{lines({{"manager", {call("search", {{"question", "X?"}}), answer("ok")}}}),
               {member("search")}};
  run.start();
  CHECK(run.end().end == run_end::success);
  CHECK(run.model->requests.size() == 2);
  CHECK(run.observations().find("task") != std::string::npos);
}

TEST_CASE("cancelling a manager cancels its agents, whose cost is counted", "[managed_run]") {
  team_run run{
    lines({{"manager", {call("search", {{"task", "Look up X."}})}}, {"search", {"let me think"}}}),
    {member("search")}};
  int asked = 0;
  // The child's second call hangs: it is under way when the manager is cancelled.
  run.model->before = [&](const model_request&) { run.model->hang = ++asked == 3; };
  run.start();
  CHECK(run.ends->empty());
  glue::post(run.agent, run_cancel{"enough"});
  run.deliver();
  CHECK(run.end().end == run_end::cancelled);
  CHECK(run.model->cancels == 1);
  CHECK(run.end().model_attempts == 2);
}

TEST_CASE("a manager's deadline is its agents' too", "[managed_run]") {
  team_run run{lines({{"manager", {call("search", {{"task", "Look up X."}})}}}),
               {member("search")}};
  auto limited = std::make_shared<agent_context>(*run.context);
  auto options = limited->agent->options;
  options.run_time = 10s;
  limited->agent = run.prepare(options);
  run.context = limited;
  int asked = 0;
  run.model->before = [&](const model_request&) { run.model->hang = ++asked == 2; };
  run.start();
  json started;
  for (auto& e : run.journal->events)
    if (e.kind == "run_started" && e.run != run_id{1000})
      started = json::parse(e.payload);
  CHECK(started["time_left_ms"] == 10'000);
  run.advance(10s);
  CHECK(run.end().end == run_end::deadline);
  auto kinds = run.journal->kinds();
  CHECK(kinds.find("deadline_passed") != std::string::npos);
}

TEST_CASE("code calls an agent: it gets the report, the loop the cost", "[managed_run]") {
  team_run run{lines({{"manager", {code("search(task='X')")}}, {"search", {answer("4")}}}),
               {member("search")},
               agent_kind::code};
  run.start();
  REQUIRE(run.backend->boxes.size() == 1);
  auto& box = run.backend->boxes.front();
  box->call_tool({call_id{1}, "search", {{"task", "X"}}});
  run.deliver();
  REQUIRE(box->answers.size() == 1);
  CHECK(box->answers[0].second.value() == json("Report of 'search':\n4"));
  box->finish_snippet(test::answered("4", "4"));
  run.deliver();
  CHECK(run.end().end == run_end::success);
  CHECK(run.end().tokens.total() == 30);
}

TEST_CASE("an agent that code called does not outlive the snippet", "[managed_run]") {
  team_run run{
    lines({{"manager", {code("search(task='X')")}}}), {member("search")}, agent_kind::code};
  int asked = 0;
  run.model->before = [&](const model_request&) { run.model->hang = ++asked == 2; };
  run.start();
  auto& box = run.backend->boxes.front();
  box->call_tool({call_id{1}, "search", {{"task", "X"}}});
  run.deliver();
  CHECK(run.model->requests.size() == 2);
  box->finish_snippet(test::answered("4", "4"));
  run.deliver();
  CHECK(run.model->cancels == 1);
  CHECK(run.end().end == run_end::success);
}

TEST_CASE("an agent's prompt says who works for it", "[managed_run]") {
  team_run run{lines({{"manager", {answer("ok")}}}), {member("search"), member("maths")}};
  run.start();
  CHECK(run.model->requests.front().find("Knows about search.") != std::string::npos);
  CHECK(run.model->requests.front().find("Knows about maths.") != std::string::npos);
}

TEST_CASE("a managed agent needs a description and a name of its own", "[managed_run]") {
  auto nameless = managed_agent_tool(member("search"));
  nameless.description.clear();
  auto options = manager_of({}, agent_kind::tool_calling);
  options.prompts = shipped_prompts(options.kind);
  options.tools = {final_answer_tool().spec};
  options.managed = {nameless};
  CHECK(define_agent(options).error().detail.find("needs a description") != std::string::npos);
  options.managed = {managed_agent_tool(member("manager"))};
  CHECK(define_agent(options).error().detail.find("taken by the agent itself")
        != std::string::npos);
  options.managed = {managed_agent_tool(member("print"))};
  CHECK(define_agent(options).error().detail.find("would hide") != std::string::npos);
  options.managed = {managed_agent_tool(member("class"))};
  CHECK(define_agent(options).error().detail.find("no Python identifier") != std::string::npos);
}

// Agents that call agents, driven by their actors: from tool calls and from code.
#include "tests/support/team_run.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using test::answer;
using test::call;
using test::code;
using test::lines;
using test::manager_of;
using test::member;
using test::team_run;

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

TEST_CASE("a plain text in place of arguments is the agent's task", "[managed_run]") {
  team_run run{lines({{"manager", {call("search", "Look up X."), answer("X is 4")}},
                      {"search", {answer("4")}}}),
               {member("search")}};
  run.start();
  CHECK(run.end().end == run_end::success);
  CHECK(run.model->requests[1].find("Look up X.") != std::string::npos);
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

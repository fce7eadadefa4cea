// A manager's sandbox that its agents share: turns, calls, and what an end leaves to the others.
#include "tests/support/team_run.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using test::answer;
using test::call;
using test::code;
using test::lines;
using test::member;

namespace {

agent_options coder(const std::string& name) {
  auto o = member(name);
  o.kind = agent_kind::code;
  return o;
}

struct shared_run : test::team_run {
  shared_run(test::script says, std::vector<agent_options> team, test::snippet_script code = hang)
    : team_run{std::move(says), std::move(team), agent_kind::tool_calling, std::move(code)} {
    auto c = std::make_shared<agent_context>(*context);
    auto o = c->agent->options;
    o.share_sandbox = true;
    c->agent = prepare(std::move(o));
    context = c;
  }

  /// A run that waits and its manager hold each other: somebody has to end them.
  ~shared_run() {
    glue::post(agent, run_cancel{"the test is over"});
    deliver();
  }

  test::scripted_sandbox& box() {
    REQUIRE(backend->boxes.size() == 1);
    return *backend->boxes.front();
  }

  void finish(snippet_outcome o) {
    box().finish_snippet(std::move(o));
    deliver();
  }
};

std::string both() {
  auto two = json::array();
  for (const auto* name : {"plotter", "loader"})  // the newest message is delivered first here
    two.push_back({{"name", name}, {"arguments", {{"task", "Do it."}}}});
  return dump_json(two);
}

}  // namespace

TEST_CASE("agents work in their manager's sandbox, one after the other", "[shared_box]") {
  shared_run run{lines({{"manager", {both(), answer("done")}},
                        {"loader", {code("data = 1"), code("final_answer('loaded')")}},
                        {"plotter", {code("final_answer(data)")}}}),
                 {coder("loader"), coder("plotter")}};
  run.start();
  CHECK(run.backend->log->ran == std::vector<std::string>{"data = 1"});
  run.finish(test::printed(""));
  CHECK(run.backend->log->ran.back() == "final_answer(data)");
  run.finish(test::answered(1, "1"));
  CHECK(run.backend->log->ran.back() == "final_answer('loaded')");
  run.finish(test::answered("loaded", "loaded"));
  CHECK(run.end().end == run_end::success);
  CHECK(run.backend->log->opened == 1);
  CHECK(run.backend->log->closed == 1);
  CHECK(run.ends->front().sandboxes == 1);
  CHECK(run.observations().find("loaded") != std::string::npos);
}

TEST_CASE("who waits for a shared sandbox loses no time of his own", "[shared_box]") {
  std::vector<snippet> seen;
  shared_run run{lines({{"manager", {both(), answer("done")}},
                        {"loader", {code("slow()")}},
                        {"plotter", {code("final_answer(1)")}}}),
                 {coder("loader"), coder("plotter")},
                 [&](const snippet& x) {
                   seen.push_back(x);
                   return std::optional<snippet_outcome>{};
                 }};
  run.start();
  run.advance(20s);
  run.finish(test::printed(""));
  REQUIRE(seen.size() >= 2);
  CHECK(seen[1].soft_deadline - seen[0].soft_deadline == 20s);
}

TEST_CASE("code in a shared sandbox calls the tools of the agent that wrote it", "[shared_box]") {
  shared_run run{lines({{"manager", {call("loader", {{"task", "Do it."}}), answer("done")}},
                        {"loader", {code("final_answer(convert_units(...))")}}}),
                 {coder("loader")}};
  run.start();
  run.box().call_tool(
    {call_id{7}, "convert_units", {{"value", 1}, {"from_unit", "km"}, {"to_unit", "m"}}});
  run.deliver();
  REQUIRE(run.box().answers.size() == 1);
  CHECK(run.box().answers[0].first == call_id{7});
  auto asked = std::ranges::find(run.journal->events, "tool_requested", &journal_event::kind);
  while (asked != run.journal->events.end() && asked->run == run_id{1000})
    asked = std::find_if(asked + 1, run.journal->events.end(),
                         [](auto& e) { return e.kind == "tool_requested"; });
  CHECK(asked != run.journal->events.end());
  run.finish(test::answered(1000, "1000"));
  CHECK(run.end().end == run_end::success);
}

TEST_CASE("an agent that ends early leaves the sandbox to the others", "[shared_box]") {
  auto hurried = coder("loader");
  hurried.run_time = 10s;
  shared_run run{lines({{"manager", {both(), answer("done")}},
                        {"loader", {code("slow()")}},
                        {"plotter", {code("final_answer(1)")}}}),
                 {hurried, coder("plotter")}};
  run.start();
  run.advance(10s);
  CHECK(run.box().interrupts == 1);
  run.finish(test::printed(""));  // nobody hears of it
  CHECK(run.backend->log->ran.back() == "final_answer(1)");
  run.finish(test::answered(1, "1"));
  CHECK(run.end().end == run_end::success);
  CHECK(run.observations().find("'loader' ended as deadline") != std::string::npos);
  CHECK(run.backend->log->opened == 1);
}

TEST_CASE("a shared sandbox that dies is opened anew for the next", "[shared_box]") {
  shared_run run{lines({{"manager", {both(), answer("done")}},
                        {"loader", {code("crash()"), answer("never mind")}},
                        {"plotter", {code("final_answer(1)")}}}),
                 {coder("loader"), coder("plotter")}};
  run.start();
  run.finish(test::ended(snippet_end::killed, "out of memory"));
  REQUIRE(run.backend->boxes.size() == 2);
  CHECK(run.backend->log->ran.back() == "final_answer(1)");
  run.backend->boxes.back()->finish_snippet(test::answered(1, "1"));
  run.deliver();
  CHECK(run.ends->empty());  // loader is still at it
}

TEST_CASE("cancelling a manager closes what it lends", "[shared_box]") {
  shared_run run{
    lines({{"manager", {both()}}, {"loader", {code("slow()")}}, {"plotter", {code("x")}}}),
    {coder("loader"), coder("plotter")}};
  run.start();
  glue::post(run.agent, run_cancel{"enough"});
  run.deliver();
  CHECK(run.end().end == run_end::cancelled);
  CHECK(run.backend->log->closed == 1);
}

TEST_CASE("a sandbox that cannot be had fails the agent that asked", "[shared_box]") {
  shared_run run{lines({{"manager", {call("loader", {{"task", "Do it."}}), answer("without")}},
                        {"loader", {code("x")}}}),
                 {coder("loader")}};
  run.backend->fail_next = 1000;
  run.start();
  run.advance(60s);
  CHECK(run.end().end == run_end::success);
  CHECK(run.observations().find("no sandbox today") != std::string::npos);
}

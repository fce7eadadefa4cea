// Agents that call and write to each other, and hooks, as a program sees them.
#include "tests/host/runtime_fixture.hpp"

#include <set>
#include <thread>

using namespace troupe;
using namespace std::chrono_literals;
using test::test_runtime;

namespace {

constexpr const char* team_script = R"({"rules": [
  {"if_task_contains": "You are 'search'",
   "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "4"}}]}},
  {"if_last_contains": "Report of 'search'",
   "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "It is 4."}}]}}],
 "default": {"tool_calls": [{"name": "search", "arguments": {"task": "Look it up."}}]}})";

constexpr const char* session_script = R"({"rules": [
  {"if_task_contains": "'asker' asks you",
   "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "seven"}}]}},
  {"if_last_contains": "seven",
   "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "It is seven."}}]}}],
 "default": {"tool_calls": [{"name": "ask_agent",
                             "arguments": {"to": "knower", "message": "How many?"}}]}})";

session_member_spec tool_member(const std::string& name) {
  return {{.name = name, .kind = "tool", .max_steps = 4}, {}};
}

}  // namespace

TEST_CASE("an agent of a team is called, shown and paid for", "[embed]") {
  test_runtime t{team_script};
  auto search = t.rt->define({.name = "search", .kind = "tool", .description = "Looks things up."});
  REQUIRE(search);
  auto manager = t.rt->define({.name = "manager", .kind = "tool", .team = {*search}});
  REQUIRE(manager);
  std::mutex mutex;
  std::set<std::string> agents;
  auto outcome = t.rt
                   ->submit(*manager, "How many?",
                            {.on_event =
                               [&](const live_event& e) {
                                 std::lock_guard lock{mutex};
                                 agents.insert(e.agent + std::to_string(e.depth));
                               }})
                   .wait();
  t.rt->stop();
  CHECK(outcome.text == "It is 4.");
  CHECK(outcome.turns == 2);
  CHECK(outcome.model_attempts == 3);
  CHECK(agents == std::set<std::string>{"manager0", "search1"});
}

TEST_CASE("the agents of a team may have models of their own", "[embed]") {
  test_runtime t{R"({"rules": [{"if_last_contains": "Report of 'search'",
    "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "It is 4."}}]}}],
    "default": {"tool_calls": [{"name": "search", "arguments": {"task": "Look it up."}}]}})"};
  auto small = "mock/" + t.folder.write("small.json", R"({"default":
    {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "4"}}]}})");
  auto search = t.rt->define(
    {.name = "search", .model = small, .kind = "tool", .description = "Looks things up."});
  REQUIRE(search);
  auto again = t.rt->define({.name = "again", .model = small, .kind = "tool"});
  REQUIRE(again);
  auto manager = t.rt->define({.name = "manager", .kind = "tool", .team = {*search}});
  REQUIRE(manager);
  auto outcome = t.rt->submit(*manager, "How many?").wait();
  CHECK(outcome.text == "It is 4.");
  CHECK(outcome.model_attempts == 3);
  CHECK(t.rt->submit(*again, "And now?").wait().text == "4");

  auto none = t.rt->define({.name = "none", .model = "mock/nowhere.json", .kind = "tool"});
  REQUIRE_FALSE(none);
  CHECK(none.error().detail.find("nowhere.json") != std::string::npos);
}

TEST_CASE("a team has agents of its own runtime, with a description", "[embed]") {
  test_runtime t{team_script}, other{team_script};
  auto nameless = t.rt->define({.name = "search", .kind = "tool"});
  REQUIRE(nameless);
  auto refused = t.rt->define({.name = "manager", .kind = "tool", .team = {*nameless}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail.find("needs a description") != std::string::npos);
  auto foreign =
    other.rt->define({.name = "search", .kind = "tool", .description = "Looks things up."});
  REQUIRE(foreign);
  refused = t.rt->define({.name = "manager", .kind = "tool", .team = {*foreign}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail.find("another runtime's") != std::string::npos);
}

TEST_CASE("a session's agents ask each other, as often as it is submitted", "[embed]") {
  test_runtime t{session_script};
  auto talk = t.rt->define(session_spec{.members = {tool_member("asker"), tool_member("knower")}});
  REQUIRE(talk);
  std::vector<run> runs;
  for (int i = 0; i < 20; ++i)
    runs.push_back(t.rt->submit(*talk, "Find out how many."));
  for (auto& r : runs) {
    auto outcome = r.wait();
    CHECK(outcome.end == "success");
    CHECK(outcome.text == "It is seven.");
    CHECK(outcome.turns == 3);
  }
}

TEST_CASE("a session is cancelled like a run, and ends with its runtime", "[embed]") {
  test_runtime t{R"({"latency": {"median_ms": 60000}, "default": "never said"})"};
  auto talk = t.rt->define(session_spec{.members = {tool_member("asker"), tool_member("knower")}});
  REQUIRE(talk);
  auto cancelled = t.rt->submit(*talk, "Wait.");
  auto left = t.rt->submit(*talk, "Wait too.");
  cancelled.cancel("enough");
  auto outcome = cancelled.wait();
  CHECK(outcome.end == "cancelled");
  CHECK(outcome.error == "enough");
  t.rt->stop();
  CHECK(left.wait().end == "cancelled");
}

TEST_CASE("a session that has just been submitted is cancelled with its runtime", "[embed]") {
  for (int i = 0; i < 20; ++i) {
    test_runtime t{session_script};
    auto talk =
      t.rt->define(session_spec{.members = {tool_member("asker"), tool_member("knower")}});
    REQUIRE(talk);
    auto left = t.rt->submit(*talk, "Find out how many.");
    t.rt->stop();
    auto end = left.wait().end;
    CHECK((end == "cancelled" || end == "success"));
  }
}

TEST_CASE("a session waits for a place like a run", "[embed]") {
  test_runtime t{R"({"latency": {"median_ms": 60000}, "default": "never said"})",
                 {.max_concurrency = 1}};
  auto talk = t.rt->define(session_spec{.members = {tool_member("asker"), tool_member("knower")}});
  REQUIRE(talk);
  std::atomic<int> begun{0};
  submit_options how;
  how.on_event = [&](const live_event& e) { begun += e.kind == "run_started" && e.depth == 0; };
  auto first = t.rt->submit(*talk, "Wait.", how);
  auto second = t.rt->submit(*talk, "Wait too.", how);
  second.cancel("enough");
  CHECK(second.wait().end == "cancelled");
  first.cancel("enough");
  CHECK(first.wait().end == "cancelled");
  t.rt->stop();
  CHECK(begun == 1);
}

TEST_CASE("a session needs two agents with names of their own", "[embed]") {
  test_runtime t{session_script};
  CHECK_FALSE(t.rt->define(session_spec{.members = {tool_member("asker")}}));
  CHECK_FALSE(t.rt->define(session_spec{.members = {tool_member("a"), tool_member("a")}}));
}

TEST_CASE("hooks of a program veto, change and listen, now or later", "[embed]") {
  test_runtime t{
    test::adding_script,
    {.hooks = {{.name = "doubler",
                .points = {"before_tool"},
                .ask = [](const hook_question& q) -> hook_answer {
                  if (q.what["tool"] != "add")
                    return {};
                  return {.changed = {{"arguments", {{"a", 4}, {"b", 6}}}}};
                }},
               {.name = "later",
                .points = {"before_step"},
                .ask_later = [](const hook_question&, std::function<void(hook_answer)> answer) {
                  std::thread{[answer = std::move(answer)] { answer({}); }}.detach();
                }}}}};
  std::atomic<double> added{0};
  auto add = make_tool("add", "Adds.", {{"a", "one"}, {"b", "other"}},
                       [&](double a, double b) { return added = a + b; });
  auto adder = t.rt->define({.name = "adder", .tools = {add}, .kind = "tool"});
  REQUIRE(adder);
  CHECK(t.rt->submit(*adder, "What is 2 + 3?").wait().ok());
  CHECK(added == 10);
  t.rt->stop();
}

TEST_CASE("a hook at a point that there is not is refused", "[embed]") {
  auto refused = runtime::start(
    {.model = "mock/none.json",
     .hooks = {
       {.name = "h", .points = {"before_lunch"}, .ask = [](auto&) -> hook_answer { return {}; }}}});
  REQUIRE_FALSE(refused);
}

TEST_CASE("a thousand runs of mixed kinds, with children, end at once", "[embed]") {
  test_runtime t{R"({"latency": {"median_ms": 20}, "rules": [
    {"if_task_contains": "You are 'search'",
     "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "4"}}]}},
    {"if_task_contains": "asks you",
     "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "seven"}}]}},
    {"if_task_contains": "You are 'coder'", "reply": "<code>\nfinal_answer(19 + 23)\n</code>"},
    {"if_task_contains": "write code",
     "reply": "<code>\nif coder('Add them.') == 42:\n    final_answer('end')\n</code>"},
    {"from_turn": 1,
     "reply": {"tool_calls": [{"name": "final_answer", "arguments": {"answer": "end"}}]}},
    {"if_task_contains": "team",
     "reply": {"tool_calls": [{"name": "search", "arguments": {"task": "One."}},
                              {"name": "search", "arguments": {"task": "Two."}}]}},
    {"if_task_contains": "talk",
     "reply": {"tool_calls": [{"name": "ask_agent",
                               "arguments": {"to": "knower", "message": "How many?"}}]}}],
    "default": {"tool_calls": [{"name": "convert_units",
      "arguments": {"value": 1, "from_unit": "km", "to_unit": "m"}}]}})",
                 {.max_concurrency = 1000}};
  auto alone = t.rt->define({.kind = "tool", .builtin_tools = {"convert_units"}});
  auto search = t.rt->define({.name = "search", .kind = "tool", .description = "Looks things up."});
  REQUIRE(alone);
  REQUIRE(search);
  auto manager = t.rt->define({.name = "manager", .kind = "tool", .team = {*search}});
  auto talk = t.rt->define(session_spec{.members = {tool_member("asker"), tool_member("knower")}});
  auto coder = t.rt->define({.name = "coder", .kind = "code", .description = "Adds numbers."});
  REQUIRE(manager);
  REQUIRE(talk);
  REQUIRE(coder);
  auto writer = t.rt->define({.kind = "code", .team = {*coder}});
  REQUIRE(writer);
  std::vector<run> runs;
  for (int i = 0; i < 1000; ++i)
    runs.push_back(i % 4 == 0   ? t.rt->submit(*alone, "alone")
                   : i % 4 == 1 ? t.rt->submit(*manager, "team")
                   : i % 4 == 2 ? t.rt->submit(*talk, "talk")
                                : t.rt->submit(*writer, "write code"));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i % 10 == 9) {
      runs[i].cancel("one in ten");
      auto outcome = runs[i].wait();  // unless it was quicker
      CHECK((outcome.end == "cancelled" || outcome.text == "end"));
      continue;
    }
    CHECK(runs[i].wait().text == "end");
  }
}

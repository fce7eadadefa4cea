// Plans, for both kinds of agent.
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

agent_options planning(agent_options o, std::uint32_t interval, std::uint32_t steps) {
  o.planning_interval = interval;
  o.max_steps = steps;
  return o;
}

}  // namespace

TEST_CASE("a plan is made before the first step and after every n, with the steps that are left "
          "(case 19)",
          "[planning]") {
  scripted_run run{planning(options_for_tests(), 2, 3)};
  run.start("T");
  auto first = run.request();
  REQUIRE(first.size() == 1);
  CHECK(first[0]["role"] == "user");
  CHECK(contains(first[0]["content"], "Before any work is done"));
  CHECK(contains(first[0]["content"], "Task:\nT\n"));
  CHECK(contains(first[0]["content"], "def final_answer("));
  CHECK(run.the<ask_model>().request.settings->stop == std::vector<std::string>{"<end_plan>"});
  CHECK(run.agent.step() == 0);

  run.on(reply("<think>hm</think>1. look\n2. answer\n<end_plan> and more", {10, 5, 0, 0}));
  CHECK(run.noted("plan")
        == json{
          {"step", 1}, {"update", false}, {"remaining_steps", 3}, {"text", "1. look\n2. answer"}});
  CHECK(run.agent.step() == 1);
  auto messages = run.request();
  REQUIRE(messages.size() == 4);
  CHECK(messages[2] == json{{"role", "assistant"}, {"content", "My plan:\n1. look\n2. answer"}});
  CHECK(messages[3]["role"] == "user");
  CHECK(run.the<ask_model>().request.turn == 1);

  run.on(code("print(1)")).on(printed("1\n"));
  CHECK(run.agent.step() == 2);
  CHECK(run.request().size() == 6);
  run.on(code("print(2)")).on(printed("2\n"));
  CHECK(run.agent.step() == 2);
  auto update = run.request();
  REQUIRE(update.size() == 9);
  CHECK(contains(update[0]["content"], "You revise the plan"));
  CHECK(contains(update[0]["content"], "\nT\n"));
  CHECK(contains(update[7]["content"], "\n2"));
  CHECK(contains(update[8]["content"], "The steps that are left, at most 1."));
  CHECK(!contains(update[8]["content"], "remaining_steps"));
  run.on(reply("new plan"));
  CHECK(run.noted("plan")
        == json{{"step", 3}, {"update", true}, {"remaining_steps", 1}, {"text", "new plan"}});
  CHECK(run.agent.step() == 3);
  run.on(code("print(3)")).on(printed("3\n"));
  CHECK(contains(run.last_content(), "Answer this task now"));  // no plan for the forced answer
  run.on(reply("done"));
  auto& end = run.the<finish>();
  CHECK(end.turns == 6);
  CHECK(end.tokens.total() == 15);
  CHECK(end.answer->text == "done");
}

TEST_CASE("a conversation that goes on has its plan revised, the old task in sight (case 19)",
          "[planning]") {
  scripted_run run{planning(options_for_tests(), 2, 3)};
  run.on(run_started{"and the next",
                     {{role::user, "the old task", {}, {}}, {role::assistant, "done", {}, {}}}});
  auto messages = run.request();
  REQUIRE(messages.size() == 5);
  CHECK(contains(messages[0]["content"], "You revise the plan"));
  CHECK(messages[1]["content"] == "the old task");
  CHECK(contains(messages[4]["content"], "The steps that are left, at most 3."));
}

TEST_CASE("the plan of a tool-calling agent is asked for without calls", "[planning]") {
  scripted_run run{planning(tool_options(), 1, 5)};
  run.start("T");
  auto& settings = *run.the<ask_model>().request.settings;
  CHECK(settings.choice.how == tool_choice::mode::none);
  CHECK(settings.tools.size() == 2);  // servers refuse calls in a history beside no tools
  CHECK(settings.stop == std::vector<std::string>{"<end_plan>"});
  run.on(reply("search, then answer")).on(search_for("x")).on(returned(1, "found"));
  auto update = run.request();
  CHECK(contains(update.back()["content"], "at most 4."));
  CHECK(update[5]["role"] == "tool");
  run.on(reply("answer")).on(answer_call("A")).on(returned(2, "A"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().turns == 4);
}

TEST_CASE("an empty plan leaves no trace in the conversation", "[planning]") {
  scripted_run run{planning(options_for_tests(), 5, 5)};
  run.start().on(reply("<think>nothing"));
  CHECK(run.noted("plan")["text"] == "");
  CHECK(run.request().size() == 2);
  CHECK(run.agent.step() == 1);
}

TEST_CASE("planning can fail, and be spent, as any call", "[planning]") {
  scripted_run failing{planning(options_for_tests(), 1, 5)};
  failing.start().on(model_failed{{failure_class::auth, "bad key", {}, 2}});
  CHECK(failing.the<finish>().end == run_end::error);
  CHECK(failing.the<finish>().error == "bad key");
  CHECK(failing.the<finish>().model_attempts == 2);
  auto o = planning(options_for_tests(), 1, 5);
  o.token_budget = 10;
  scripted_run spent{o};
  spent.start().on(reply("plan", {8, 3, 0, 0}));
  CHECK(spent.the<finish>().end == run_end::budget);
}

TEST_CASE("the first plan sees the task's images", "[planning]") {
  scripted_run run{planning(options_for_tests(), 5, 5)};
  run.on(run_started{.task = "T", .images = {"https://e.org/a.png"}});
  CHECK(run.request()[0]["content"][1]["image_url"]["url"] == "https://e.org/a.png");
  run.on(reply("look"));
  CHECK(run.request()[1]["content"][0]["text"] == "New task:\nT");
  CHECK(run.request()[1]["content"][1]["image_url"]["url"] == "https://e.org/a.png");
}

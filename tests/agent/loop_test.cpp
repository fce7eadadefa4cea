#include "runtime/agent/managed_agent.hpp"
#include "tests/agent/agent_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a run starts with the system prompt and the task", "[loop]") {
  scripted_run run;
  run.start("How much is 6 * 7?");
  auto messages = run.request();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0]["role"] == "system");
  CHECK(contains(messages[0]["content"], "def final_answer("));
  CHECK(messages[1] == json{{"role", "user"}, {"content", "New task:\nHow much is 6 * 7?"}});
  CHECK(run.agent.step() == 1);
  auto& request = run.the<ask_model>().request;
  CHECK(request.settings->stop
        == std::vector<std::string>{"Observation:", "Calling tools:", "</code>"});
  CHECK(request.turn == 0);
  CHECK(request.run == run_id{7});
  CHECK(request.deadline == never);
}

TEST_CASE("code runs, its observation goes back, the answer ends the run", "[loop]") {
  scripted_run run;
  run.start().on(reply("Thought: compute.\n<code>\nx = 6 * 7\nprint(x)\n", {10, 5, 0, 0}));
  CHECK(run.the<run_code>().code.code == "x = 6 * 7\nprint(x)");
  CHECK(!run.the<run_code>().code.may_be_prose);
  CHECK(run.noted("action")
        == json{{"step", 1}, {"code", "x = 6 * 7\nprint(x)"}, {"source", "tags"}});
  run.on(printed("42\n"));
  auto messages = run.request();
  REQUIRE(messages.size() == 4);
  CHECK(messages[2]
        == json{{"role", "assistant"},
                {"content", "Thought: compute.\n<code>\nx = 6 * 7\nprint(x)\n</code>"}});
  CHECK(messages[3] == json{{"role", "user"}, {"content", "Observation:\nExecution logs:\n42"}});
  CHECK(run.the<ask_model>().request.turn == 1);
  CHECK(run.noted("observation")["is_error"] == false);
  run.on(code("final_answer(x)")).on(answered(42, "42"));
  auto& end = run.the<finish>();
  CHECK(std::holds_alternative<finish>(run.commands.back()));
  CHECK(end.end == run_end::success);
  CHECK(end.answer == value{42, "42"});
  CHECK(end.turns == 2);
  CHECK(end.snippets == 2);
  CHECK(end.snippet_failures == 0);
  CHECK(end.model_attempts == 2);
  CHECK(end.tokens.total() == 15);
  CHECK(run.noted("final_answer")["accepted"] == true);
  CHECK(run.agent.finished());
}

TEST_CASE("earlier messages of a chat input stand between system prompt and task", "[loop]") {
  scripted_run run;
  run.on(run_started{"and now?",
                     {{role::system, "Be brief.", {}, {}},
                      {role::user, "hi", {}, {}},
                      {role::assistant, "hello", {}, {}}}});
  auto messages = run.request();
  REQUIRE(messages.size() == 4);
  CHECK(contains(messages[0]["content"], "\n\nBe brief."));
  CHECK(messages[1]["content"] == "hi");
  CHECK(messages[2]["role"] == "assistant");
  CHECK(messages[3]["content"] == "New task:\nand now?");
}

TEST_CASE("a system prompt that names the task is rendered per run", "[loop]") {
  auto o = options_for_tests();
  o.prompts.system_prompt = "Solve: {{ task }}";
  auto definition = definition_of(o);
  for (std::string task : {"one", "two"}) {
    agent_machine agent{definition, openai_codec().encoder(), run_id{1}};
    (void)agent.on(run_started{task, {}}, start_time);
    CHECK(contains(std::string{agent.messages().message(0)}, "Solve: " + task));
  }
}

TEST_CASE("a failing model ends the run with the failure's line (case 14)", "[loop]") {
  scripted_run run;
  run.start().on(model_failed{{failure_class::auth, "401 from\nserver: check the key", {}, 3}});
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "401 from server: check the key");
  CHECK(run.the<finish>().model_attempts == 3);
  CHECK(run.the<finish>().turns == 0);
  CHECK(run.agent.messages().size() == 2);
  CHECK(run.agent.step() == 1);
}

TEST_CASE("prints come before the exception in the next prompt (case 15)", "[loop]") {
  scripted_run run;
  run.start().on(code("print('seen')\n1 / 0"));
  run.on(raised("ZeroDivisionError", "division by zero", 2, "seen\n"));
  auto text = run.last_content();
  CHECK(
    text.starts_with("Observation:\nExecution logs:\nseen\nError:\nZeroDivisionError: division by "
                     "zero\nAt line 2: 1 / 0\n"));
  CHECK(run.noted("observation")["is_error"] == true);
  run.on(code("final_answer(1)")).on(answered(1, "1"));
  CHECK(run.the<finish>().snippet_failures == 1);
  CHECK(run.the<finish>().end == run_end::success);
}

TEST_CASE("at max steps one answer is forced, with other messages around the memory (case 16)",
          "[loop]") {
  auto o = options_for_tests();
  o.max_steps = 2;
  scripted_run run{o};
  run.start("T").on(code("print(1)")).on(printed("1\n")).on(code("print(2)")).on(printed("2\n"));
  CHECK(run.agent.step() == 3);
  auto messages = run.request();
  REQUIRE(messages.size() == 7);
  CHECK(contains(messages[0]["content"], "used up its steps"));
  CHECK(messages[1]["content"] == "New task:\nT");
  CHECK(contains(messages[5]["content"], "\n2"));
  CHECK(messages[6]["role"] == "user");
  CHECK(contains(messages[6]["content"], "Answer this task now, from the work above:\nT\n"));
  CHECK(run.the<ask_model>().request.settings->stop.empty());
  run.on(reply("<think>so</think> about 2"));
  CHECK(run.the<finish>().end == run_end::max_steps);
  CHECK(run.the<finish>().answer == value{"about 2", "about 2"});
  CHECK(run.the<finish>().turns == 3);
  CHECK(run.noted("final_answer")["forced"] == true);
}

TEST_CASE("a run that is made to answer is told of step by step, and of its answer once",
          "[loop]") {
  auto o = options_for_tests();
  o.max_steps = 2;
  scripted_run run{o};
  std::string told;
  auto next = [&](const agent_event& e) {
    run.on(e);
    for (auto& n : run.all<note>())
      told += n.kind + std::to_string(n.payload.value("step", 0)) + " ";
  };
  next(run_started{"T", {}});
  for (auto& event : std::vector<agent_event>{code("a"), printed("1"), code("b"), printed("2")})
    next(event);
  next(reply("two"));
  CHECK(told == "action1 observation1 action2 observation2 final_answer3 ");
}

TEST_CASE("the tokens of all calls are summed, and replies that tell none are counted", "[loop]") {
  auto o = options_for_tests();
  o.max_steps = 2;
  scripted_run run{o};
  auto says = [](std::string text, token_usage used) { return reply(std::move(text), used); };
  run.start().on(says("<code>a</code>", {100, 10, 50, 0})).on(printed("1"));
  run.on(says("<code>b</code>", {})).on(printed("2")).on(says("two", {200, 5, 100, 3}));
  CHECK(run.the<finish>().tokens
        == token_usage{.input = 300, .output = 15, .cached = 150, .reasoning = 3, .untold = 1});
}

TEST_CASE("the forced answer passes the same checks as any other", "[loop]") {
  auto o = options_for_tests();
  o.max_steps = 1;
  o.checks = {{"is_number", [](const value& a) -> result<void> {
                 return a.text == "2" ? result<void>{} : fail(errc::invalid_argument, "no number");
               }}};
  scripted_run good{o};
  good.start().on(code("x")).on(printed("")).on(reply("2"));
  CHECK(good.the<finish>().answer);
  scripted_run bad{o};
  bad.start().on(code("x")).on(printed("")).on(reply("two"));
  CHECK(bad.the<finish>().end == run_end::max_steps);
  CHECK(!bad.the<finish>().answer);
  CHECK(contains(bad.the<finish>().error, "the check 'is_number' failed: no number"));
  scripted_run empty{o};
  empty.start().on(code("x")).on(printed("")).on(reply("  "));
  CHECK(!empty.the<finish>().answer);
}

TEST_CASE("a refused answer is an error that names the check, and the run goes on (case 17)",
          "[loop]") {
  auto o = options_for_tests();
  o.checks = {{"positive", [](const value& a) -> result<void> {
                 return a.tagged > 0 ? result<void>{} : fail(errc::invalid_argument, "not above 0");
               }}};
  scripted_run run{o};
  run.start().on(code("print('p'); final_answer(-1)"));
  auto refused = answered(-1, "-1");
  refused.outcome.logs = "p\n";
  run.on(refused);
  CHECK(!run.has<finish>());
  auto text = run.last_content();
  CHECK(text.starts_with("Observation:\nExecution logs:\np\nError:\n"));
  CHECK(contains(text, "the check 'positive' failed: not above 0"));
  CHECK(run.noted("final_answer")["accepted"] == false);
  run.on(code("final_answer(1)")).on(answered(1, "1"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().answer->tagged == 1);
}

TEST_CASE("a check that throws has refused the answer", "[loop]") {
  auto o = options_for_tests();
  o.checks = {{"fragile", [](const value& a) -> result<void> {
                 (void)a.tagged.at("missing");
                 return {};
               }}};
  scripted_run run{o};
  run.start().on(code("final_answer(1)")).on(answered(1, "1"));
  CHECK(contains(run.last_content(), "the check 'fragile' failed"));
}

TEST_CASE("a final_answer without a value answers None", "[loop]") {
  scripted_run run;
  auto done = answered(nullptr, "None");
  done.outcome.result.reset();
  run.start().on(code("final_answer(None)")).on(done);
  CHECK(run.the<finish>().answer == value{nullptr, "None"});
}

TEST_CASE("the answer is what the sandbox says it is, also from a custom final_answer (case 23)",
          "[loop]") {
  auto o = options_for_tests();
  o.tools[0].parameters = ordered_json::parse(
    R"({"type":"object","properties":{"city":{"type":"string"},"score":{"type":"number"}}})");
  scripted_run run{o};
  run.start();
  CHECK(contains(run.request()[0]["content"],
                 "def final_answer(city: str | None = None, score: float"));
  run.on(code("final_answer('Graz', 3)"))
    .on(answered({{"city", "Graz"}, {"score", 3}}, "Graz (3)"));
  CHECK(run.the<finish>().answer == value{{{"city", "Graz"}, {"score", 3}}, "Graz (3)"});
}

TEST_CASE("a refused import is shown with the module and the allow-list (case 24)", "[loop]") {
  scripted_run run;
  run.start().on(code("import os"));
  run.on(raised("ImportError", "import of 'os' is not allowed; allowed: math, re", 1));
  CHECK(
    contains(run.last_content(), "ImportError: import of 'os' is not allowed; allowed: math, re"));
}

TEST_CASE("text about final_answer is no answer; only the sandbox's word counts (case 25)",
          "[loop]") {
  scripted_run run;
  run.start().on(code("s = 'final_answer(5)'\nprint(s)")).on(printed("final_answer(5)\n"));
  CHECK(!run.has<finish>());
  auto raised_final = answered(5, "5");
  raised_final.outcome.end = snippet_end::raised;
  run.on(code("final_answer(5)")).on(raised_final);
  CHECK(!run.has<finish>());
}

TEST_CASE("each step's code goes to the same session in order (case 26)", "[loop]") {
  scripted_run run;
  run.start().on(code("def f(): return 3"));
  CHECK(run.the<run_code>().code.code == "def f(): return 3");
  run.on(printed("")).on(code("print(f())"));
  CHECK(run.the<run_code>().code.code == "print(f())");
}

TEST_CASE("a bare reply is tried as code; when it is none, the format is explained", "[loop]") {
  scripted_run run;
  run.start().on(reply("I think the final answer is 5."));
  CHECK(run.the<run_code>().code.may_be_prose);
  CHECK(run.noted("action")["source"] == "bare");
  run.on(ended(snippet_end::not_code));
  auto text = run.last_content();
  CHECK(text.starts_with("Error:\nYour reply held no code"));
  CHECK(contains(text, "final_answer(\"your answer here\")"));
  CHECK(run.request()[2]["content"] == "I think the final answer is 5.");  // no tag was added
  run.on(reply("final_answer(5)")).on(answered(5, "5"));
  CHECK(run.the<finish>().answer->tagged == 5);
  CHECK(run.the<finish>().snippets == 1);
}

TEST_CASE("an empty reply gets the format error, and memory stays well formed", "[loop]") {
  scripted_run run;
  run.start().on(reply(""));
  CHECK(!run.has<run_code>());
  CHECK(run.request()[2]["content"] == "(empty reply)");
  CHECK(run.last_content().starts_with("Error:\n"));
  CHECK(run.agent.step() == 2);
}

TEST_CASE("half a program is not run when the reply was cut short", "[loop]") {
  scripted_run run;
  auto cut = reply("<code>\nfor path in everything:\n  delete(pa");
  cut.reply.finish_reason = "length";
  run.start().on(cut);
  CHECK(!run.has<run_code>());
  CHECK(contains(run.last_content(), "was not run"));
  auto whole = code("x = 1");
  whole.reply.finish_reason = "length";
  run.on(whole);
  CHECK(run.has<run_code>());
}

TEST_CASE("a reply of ten megabytes is refused and kept short", "[loop]") {
  scripted_run run;
  run.start().on(code("x = '" + std::string(10u << 20, 'a') + "'"));
  CHECK(!run.has<run_code>());
  CHECK(contains(run.last_content(), "bytes long and was not run"));
  CHECK(run.agent.messages().bytes() < 1u << 20);
  run.on(code("print(1)"));
  CHECK(run.has<run_code>());
}

TEST_CASE("bytes that are not UTF-8 are replaced on the way in", "[loop]") {
  scripted_run run;
  run.on(run_started{"t\xFF", {}}).on(reply("<code>x = '\xC3('</code>"));
  CHECK(run.the<run_code>().code.code == "x = '\uFFFD('");
  run.on(printed("\xED\xA0\x80\n"));
  CHECK(contains(run.last_content(), "\uFFFD"));
  CHECK(run.request()[1]["content"] == "New task:\nt\uFFFD");
}

TEST_CASE("a dead sandbox is an observation, and the run goes on", "[loop]") {
  scripted_run run;
  run.start().on(code("x = [0] * 10**12")).on(ended(snippet_end::memory, "limit 1 GiB"));
  CHECK(contains(run.last_content(), "are lost"));
  run.on(code("final_answer(1)")).on(answered(1, "1"));
  CHECK(run.the<finish>().end == run_end::success);
  CHECK(run.the<finish>().snippet_failures == 1);
}

TEST_CASE("a snippet gets its soft and hard deadline, but never beyond the run's", "[loop]") {
  auto o = options_for_tests();
  o.step_time = 10s;
  o.step_grace = 2s;
  o.run_time = 60s;
  scripted_run run{o};
  run.start();
  CHECK(run.agent.deadline() == start_time + 60s);
  CHECK(run.the<ask_model>().request.deadline == start_time + 60s);
  run.on(code("x"), start_time + 5s);
  CHECK(run.the<run_code>().code.soft_deadline == start_time + 15s);
  CHECK(run.the<run_code>().code.hard_deadline == start_time + 17s);
  run.on(printed("")).on(code("y"), start_time + 49s);
  CHECK(run.the<run_code>().code.soft_deadline == start_time + 59s);
  CHECK(run.the<run_code>().code.hard_deadline == start_time + 60s);
}

TEST_CASE("usage of all snippets is summed", "[loop]") {
  scripted_run run;
  auto first = printed("a");
  first.outcome.usage = {100us, 50us, 1000, 2};
  auto second = answered(1, "1");
  second.outcome.usage = {10us, 5us, 3000, 1};
  run.start().on(code("a")).on(first).on(code("b")).on(second);
  auto& usage = run.the<finish>().sandbox;
  CHECK(usage.wall == 110us);
  CHECK(usage.cpu == 55us);
  CHECK(usage.max_rss_bytes == 3000);
  CHECK(usage.tool_calls == 3);
}

TEST_CASE("a closing tag that is part of the opening one is no stop sequence", "[loop]") {
  auto o = options_for_tests();
  o.code_open = "```python";
  o.code_close = "```";
  o.model.stop = {"END"};
  scripted_run run{o};
  run.start();
  CHECK(run.the<ask_model>().request.settings->stop
        == std::vector<std::string>{"END", "Observation:", "Calling tools:"});
}

TEST_CASE("agents of a team share names of tools, but none with their manager's own", "[loop]") {
  auto with_search = [](std::string name) {
    auto o = options_for_tests();
    o.name = std::move(name);
    o.description = "Looks things up.";
    o.tools.push_back(final_answer_spec());
    o.tools.back().name = "search";
    o.tools.back().ends_run = false;
    return o;
  };
  auto manager = with_search("manager");
  for (auto* name : {"north", "south"}) {
    auto child = with_search(name);
    CHECK(define_agent(child));
    manager.managed.push_back(managed_agent_tool(child));
  }
  CHECK(define_agent(manager));
  manager.managed.push_back(managed_agent_tool(with_search("north")));
  CHECK(contains(define_agent(manager).error().detail, "'north': the name is taken by another"));
  manager.managed.back() = managed_agent_tool(with_search("search"));
  CHECK(contains(define_agent(manager).error().detail, "'search': the name is taken by another"));
}

TEST_CASE("options that cannot work are refused with the reason", "[loop]") {
  auto refused = [](auto change) {
    auto o = options_for_tests();
    change(o);
    auto ok = validate(o);
    REQUIRE(!ok);
    CHECK(ok.error().code == errc::invalid_argument);
    return ok.error().detail;
  };
  CHECK(validate(options_for_tests()));
  CHECK(contains(refused([](auto& o) { o.max_steps = 0; }), "max_steps"));
  CHECK(contains(refused([](auto& o) { o.repeat_limit = 1; }), "repeat_limit"));
  CHECK(contains(refused([](auto& o) { o.code_close = ""; }), "tags"));
  CHECK(contains(refused([](auto& o) { o.tools.clear(); }), "final_answer"));
  CHECK(contains(refused([](auto& o) { o.tools.push_back(o.tools[0]); }), "taken by another tool"));
  CHECK(contains(refused([](auto& o) { o.name = "final_answer"; }), "the agent itself"));
  CHECK(contains(refused([](auto& o) { o.tools[0].name = "class"; }), "'class'"));
  CHECK(contains(refused([](auto& o) { o.tools[0].name = "a-b"; }), "'a-b'"));
  CHECK(contains(refused([](auto& o) { o.model.stop = {"a", "b"}; }), "stop"));
  CHECK(contains(refused([](auto& o) { o.checks = {{"x", {}}}; }), "check"));
  CHECK(contains(refused([](auto& o) { o.step_time = 0ms; }), "step_time"));
  CHECK(contains(refused([](auto& o) { o.prompts.system_prompt = "{{ toolz }}"; }),
                 "system_prompt, line 1: unknown name 'toolz' (did you mean 'tools'?)"));
  CHECK(contains(refused([](auto& o) { o.prompts.final_answer_post = "{{ tsk }}"; }),
                 "final_answer.post_messages, line 1"));
  CHECK(
    contains(refused([](auto& o) { o.prompts.managed_task = "{% if %}"; }), "managed_agent.task"));
}

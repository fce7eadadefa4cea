// The context window: what is cut when a conversation becomes too long, and what stays.
#include "tests/agent/tool_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

agent_options narrow(agent_options o, std::uint64_t window) {
  o.context.window = window;
  o.context.keep_steps = 2;
  o.context.observation_tokens = 1'000'000;
  o.max_steps = 100;
  return o;
}

/// Turns with `bytes` of output each, so that the server counts `tokens` for each prompt.
void turns(scripted_run& run, int n, std::size_t bytes, std::uint64_t tokens = 0) {
  for (int i = 0; i < n; ++i) {
    run.on(reply("<code>\nstep(" + std::to_string(i) + ")\n</code>", {tokens, 1, 0, 0}));
    run.on(printed(std::to_string(i) + std::string(bytes, 'x')));
  }
}

model_failed too_long(std::string detail = "too long") {
  return {{failure_class::context_length, std::move(detail), {}, 1}};
}

std::size_t bytes_of(const scripted_run& run) {
  return run.agent.messages().bytes();
}

std::size_t prompt_bytes() {
  return scripted_run{}.start().agent.messages().bytes();
}

bool is_cut(const json& message) {
  return contains(message["content"], "bytes were cut here to make room");
}

}  // namespace

TEST_CASE("old observations are cut first, oldest first, and the last steps stay", "[context]") {
  // Room for the prompt and somewhat more than 3 observations of 4 KB.
  scripted_run run{narrow(options_for_tests(), (prompt_bytes() + 15'000) / 4 * 10 / 8)};
  run.start();
  turns(run, 3, 4'000);
  CHECK(run.noted("compaction").is_null());
  auto before = bytes_of(run);
  turns(run, 1, 4'000);
  auto note = run.noted("compaction");
  CHECK(note["how"] == "observations");
  CHECK(note["step"] == 5);
  CHECK(note["bytes_before"] > before);
  CHECK(note["bytes_after"] == bytes_of(run));
  CHECK(note["bytes_after"] < note["bytes_before"]);
  auto messages = run.request();
  REQUIRE(messages.size() == 10);
  CHECK(is_cut(messages[3]));
  CHECK(contains(messages[3]["content"], "Observation:\n[4017 bytes were cut"));
  CHECK(messages[2]["content"] == "<code>\nstep(0)\n</code>");
  CHECK(!is_cut(messages[7]));
  CHECK(!is_cut(messages[9]));
  CHECK(run.agent.step() == 5);
}

TEST_CASE("what the server counts decides, not the estimate", "[context]") {
  scripted_run run{narrow(options_for_tests(), 10'000)};
  run.start();
  turns(run, 3, 1'000, 7'000);
  CHECK(run.noted("compaction").is_null());
  turns(run, 1, 1'000, 7'900);
  CHECK(run.noted("compaction")["how"] == "observations");
}

TEST_CASE(
  "when that is not enough the model is asked for a summary, which stands for the old steps",
  "[context]") {
  auto o = narrow(options_for_tests(), 10'000);
  o.planning_interval = 50;
  scripted_run run{o};
  run.start("the task").on(reply("1. work"));
  // Long code cannot be cut as an observation can.
  for (int i = 0; i < 6 && run.noted("compaction").is_null(); ++i) {
    run.on(reply("<code>\n" + std::string(4'000, 'a') + "\n</code>",
                 {2'000u + 1'200u * static_cast<unsigned>(i), 1, 0, 0}));
    run.on(printed(std::to_string(i)));
    if (contains(run.last_content(), "too long to be read on"))
      break;
  }
  auto asked = run.request();
  CHECK(contains(asked.back()["content"], "For the task\nthe task\nwrite down"));
  CHECK(run.the<ask_model>().request.settings->stop.empty());
  auto step = run.agent.step();
  auto before = bytes_of(run);
  run.on(reply("<think>t</think>found: 42", {9'000, 10, 0, 0}));
  auto note = run.noted("compaction");
  CHECK(note["how"] == "summary");
  CHECK(note["text"] == "found: 42");
  CHECK(note["bytes_before"] == before);
  CHECK(run.agent.step() == step);
  auto messages = run.request();
  REQUIRE(messages.size() == 9);
  CHECK(messages[0]["role"] == "system");
  CHECK(messages[1]["content"] == "New task:\nthe task");
  CHECK(messages[2]["content"] == "My plan:\n1. work");
  CHECK(messages[4]["role"] == "user");
  CHECK(messages[4]["content"]
        == "Summary of the older part of the work, which is no longer shown:\nfound: 42");
  CHECK(messages[5]["role"] == "assistant");
  CHECK(messages[8] == asked[asked.size() - 2]);
  run.on(code("final_answer(1)")).on(answered(1, "1"));
  CHECK(run.the<finish>().end == run_end::success);
}

TEST_CASE("a refused request is shortened and sent again: observations, a summary, the rest",
          "[context]") {
  scripted_run run{narrow(options_for_tests(), 0)};
  run.start("T");
  turns(run, 4, 2'000);
  auto step = run.agent.step();
  run.on(too_long("This model's maximum context length is 8192 tokens."));
  CHECK(run.noted("compaction")["how"] == "observations");
  CHECK(run.noted("compaction")["messages"] == 2);
  CHECK(run.request().size() == 10);
  run.on(too_long());
  CHECK(contains(run.last_content(), "too long to be read on"));
  run.on(reply("sum"));
  CHECK(run.noted("compaction")["how"] == "summary");
  CHECK(run.request().size() == 7);
  run.on(too_long());
  CHECK(run.noted("compaction")["how"] == "squeeze");
  auto messages = run.request();
  CHECK(is_cut(messages[4]));
  CHECK(contains(messages[6]["content"], "Execution logs:\n3xxx"));
  CHECK(run.agent.step() == step);
  auto branch = run;
  run.on(too_long("still too long"));
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "still too long");
  CHECK(run.the<finish>().model_attempts == 4 + 4 + 1);
  // The window is known now: the next time nothing need be refused.
  turns(branch, 1, 4'000);
  CHECK(branch.noted("compaction").is_null());
  turns(branch, 1, 4'000, 6'000);
  CHECK(branch.noted("compaction")["how"] == "observations");
}

TEST_CASE("a summary that is itself too long is done without", "[context]") {
  scripted_run run{narrow(options_for_tests(), 0)};
  run.start("T");
  turns(run, 4, 100);
  run.on(too_long());  // nothing to cut: the summary comes at once
  CHECK(contains(run.last_content(), "too long to be read on"));
  run.on(too_long());
  CHECK(run.noted("compaction")["how"] == "left_out");
  CHECK(contains(run.request()[2]["content"], "was left out here"));
  CHECK(run.request().size() == 7);
}

TEST_CASE("a first request that is too long has nothing to cut", "[context]") {
  scripted_run run;
  run.start().on(too_long("the model reads 100 tokens"));
  CHECK(run.the<finish>().end == run_end::error);
  CHECK(run.the<finish>().error == "the model reads 100 tokens");
}

TEST_CASE("tool results are cut in place, and stay the answers of their calls", "[context]") {
  scripted_run run{narrow(tool_options(), 0)};
  run.start("T");
  for (int i = 0; i < 3; ++i) {
    auto id = static_cast<std::uint64_t>(i) * 2 + 1;
    run.on(calls({call("a" + std::to_string(i), "search", R"({"query":"x"})"),
                  call("b" + std::to_string(i), "search", R"({"query":"y"})")}));
    run.on(returned(id, std::string(900, 'x'))).on(failed(id + 1, std::string(900, 'y')));
  }
  run.on(too_long());
  CHECK(run.noted("compaction")["messages"] == 2);
  auto messages = run.request();
  CHECK(messages[3]["tool_call_id"] == "a0");
  CHECK(is_cut(messages[3]));
  CHECK(messages[4]["tool_call_id"] == "b0");
  CHECK(is_cut(messages[4]));
  CHECK(!is_cut(messages[6]));
  run.on(too_long()).on(reply("sum"));
  messages = run.request();
  REQUIRE(messages.size() == 9);
  CHECK(messages[2]["content"]
        == "Summary of the older part of the work, which is no longer shown:\nsum");
  CHECK(messages[3]["tool_calls"][0]["id"] == "a1");
  CHECK(messages[4]["tool_call_id"] == "a1");
}

TEST_CASE("of a conversation the first message, the task and its images stay", "[context]") {
  for (auto wire :
       {wire_format::openai_chat, wire_format::openai_responses, wire_format::anthropic}) {
    agent_machine agent{definition_of(narrow(options_for_tests(), 0)),
                        make_codec({.wire = wire})->encoder(), run_id{1}};
    std::vector<chat_message> history{{role::user, "first", {}, {}}};
    for (int i = 0; i < 5; ++i) {
      history.push_back({role::assistant, "reply " + std::to_string(i), {}, {}});
      history.push_back({role::user, "question " + std::to_string(i), {}, {}});
    }
    history.push_back({role::assistant, "last reply", {}, {}});
    (void)agent.on(run_started{"now this", history, {"https://e.org/a.png"}}, start_time);
    (void)agent.on(too_long(), start_time);
    auto commands = agent.on(reply("they talked"), start_time);
    REQUIRE(std::holds_alternative<ask_model>(commands.back()));
    auto text = std::get<ask_model>(commands.back()).request.messages.text();
    for (auto* part : {"first", "New task:", "now this", "https://e.org/a.png", "they talked"})
      CHECK(contains(text, part));
    for (auto* part : {"reply 0", "question 4", "last reply"})
      CHECK(!contains(text, part));
  }
}

TEST_CASE("one observation may have a share of the window, its head and tail kept", "[context]") {
  auto o = options_for_tests();
  o.context.observation_tokens = 100;
  scripted_run run{o};
  run.start().on(code("x")).on(printed("head" + std::string(5'000, 'x') + "tail"));
  auto text = run.last_content();
  CHECK(text.size() < 600);
  CHECK(text.starts_with("Observation:\nExecution logs:\nhead"));
  CHECK(text.ends_with("tail"));
  auto tools = tool_options();
  tools.context.window = 40'000;
  scripted_run calling{tools};
  calling.start().on(search_for("x")).on(returned(1, std::string(50'000, 'x')));
  CHECK(calling.last_content().size() < 20'200);  // max_value_bytes, which is less than a quarter
}

TEST_CASE("a run starts from its history and nothing else", "[context]") {
  auto definition = definition_of(options_for_tests());
  auto start = react_loop::start_of(*definition, openai_codec().encoder());
  agent_machine one{definition, openai_codec().encoder(), start, run_id{1}};
  (void)one.on(run_started{"one", {{role::user, "secret", {}, {}}}, {}}, start_time);
  (void)one.on(code("x = 1"), start_time);
  (void)one.on(printed("private"), start_time);
  agent_machine two{definition, openai_codec().encoder(), start, run_id{2}};
  (void)two.on(run_started{"two", {}, {}}, start_time);
  scripted_run fresh{definition};
  fresh.start("two");
  CHECK(two.messages().view().text() == fresh.agent.messages().view().text());
}

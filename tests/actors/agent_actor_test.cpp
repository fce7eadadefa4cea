#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

std::string code(const std::string& text) {
  return "Thought: go.\n<code>\n" + text + "\n</code>";
}

/// Runs "final" code as an answer of 42, everything else as a print.
std::optional<snippet_outcome> answer_final(const snippet& s) {
  if (s.code.find("final_answer") != std::string::npos)
    return test::answered(42, "42");
  return test::printed("ran " + s.code);
}

std::optional<snippet_outcome> hang(const snippet&) {
  return std::nullopt;
}

struct one_run {
  explicit one_run(test::run_fixture& fixture) : fx{fixture} {
    std::tie(owner, ends) = fx.collector<run_finished>();
    agent = spawn_agent(fx.sys, fx.context, {run_id{7}, "s1", {}, owner});
    agent->attach_functor([this](const caf::error&) { gone = true; });
    glue::post(agent, run_start{{"What is six times seven?", {}}});
    agent_weak = caf::actor_cast<caf::weak_actor_ptr>(agent);
    fx.deliver();
  }

  void tell(auto message) {
    if (agent)
      glue::post(agent, std::move(message));
    fx.deliver();
  }

  test::run_fixture& fx;
  caf::actor owner;
  std::shared_ptr<std::vector<run_finished>> ends;
  caf::actor agent;
  caf::weak_actor_ptr agent_weak;
  bool gone = false;
};

}  // namespace

TEST_CASE("a run goes from task to answer, and everything it did is in the journal in order",
          "[agent_actor]") {
  test::run_fixture fx{std::make_shared<test::scripted_endpoint>(std::vector<std::string>{
                         code("x = 6 * 7\nprint(x)"), code("final_answer(x)")}),
                       answer_final};
  one_run run{fx};
  REQUIRE(run.ends->size() == 1);
  auto& end = run.ends->front();
  CHECK(end.end.end == run_end::success);
  CHECK(end.end.answer->text == "42");
  CHECK(end.end.turns == 2);
  CHECK(end.end.tokens.total() == 30);
  CHECK(end.sandboxes == 1);
  CHECK(end.model == "scripted-1");
  CHECK(run.gone);
  CHECK(fx.backend->log->live == 0);
  CHECK(fx.journal->kinds().starts_with("run_started model_requested model_replied action"));
  CHECK(fx.journal->kinds().ends_with("run_ended"));
  for (std::uint32_t i = 0; i < fx.journal->events.size(); ++i)
    CHECK(fx.journal->events[i].seq == i + 1);
}

TEST_CASE("nothing follows from an event before it is durable", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("final_answer(1)")}),
    answer_final};
  fx.journal->hold = true;
  one_run run{fx};
  CHECK(fx.model->requests.empty());
  fx.release_journal();
  CHECK(fx.model->requests.size() == 1);
  CHECK(fx.backend->log->ran.empty());
  fx.release_journal();
  CHECK(fx.backend->log->ran.size() == 1);
  CHECK(run.ends->empty());
  fx.release_journal();
  CHECK(run.ends->size() == 1);
}

TEST_CASE("cancelling a run closes its model call", "[agent_actor]") {
  auto model = std::make_shared<test::scripted_endpoint>(std::vector<std::string>{});
  model->hang = true;
  test::run_fixture fx{model, answer_final};
  one_run run{fx};
  CHECK(model->requests.size() == 1);
  run.tell(run_cancel{"the user said so"});
  CHECK(model->cancels == 1);
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::cancelled);
}

TEST_CASE("cancelling a run kills its snippet and its sandbox", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("while True: pass")}),
    hang};
  one_run run{fx};
  CHECK(fx.backend->log->live == 1);
  run.tell(run_cancel{"enough"});
  CHECK(fx.backend->log->live == 0);
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::cancelled);
}

TEST_CASE("cancelling while the sandbox opens leaves none behind", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("1")}), answer_final};
  fx.backend->hold = true;
  one_run run{fx};
  run.tell(run_cancel{"enough"});
  CHECK(run.ends->size() == 1);
  fx.backend->release();
  fx.deliver();
  CHECK(fx.backend->log->opened == 1);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("a run's deadline ends it wherever it is", "[agent_actor]") {
  agent_options options;
  options.run_time = 10s;
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("while True: pass")}),
    hang, options};
  one_run run{fx};
  fx.advance(9'999ms);
  CHECK(run.ends->empty());
  fx.advance(1ms);
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::deadline);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("an agent that ends by itself leaves no timer", "[agent_actor]") {
  agent_options options;
  options.run_time = 10s;
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("final_answer(1)")}),
    answer_final, options};
  one_run run{fx};
  CHECK(run.ends->size() == 1);
  run.agent = nullptr;
  fx.deliver();
  CHECK(!fx.clock.next());
}

TEST_CASE("a dead sandbox is an observation, and the next snippet gets a fresh one",
          "[agent_actor]") {
  test::run_fixture fx{std::make_shared<test::scripted_endpoint>(
                         std::vector<std::string>{code("crash()"), code("final_answer(1)")}),
                       [](const snippet& s) -> std::optional<snippet_outcome> {
                         if (s.code.find("crash") != std::string::npos)
                           return test::ended(snippet_end::crashed, "killed by signal 11");
                         return answer_final(s);
                       }};
  one_run run{fx};
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::success);
  CHECK(run.ends->front().sandboxes == 2);
  CHECK(fx.backend->log->live == 0);
  CHECK(fx.model->requests.back().find("signal 11") != std::string::npos);
}

TEST_CASE("no sandbox to be had ends the run with the reason", "[agent_actor]") {
  test::run_fixture fx{std::make_shared<test::scripted_endpoint>(
                         std::vector<std::string>{code("1"), code("1"), code("1")}),
                       answer_final};
  fx.backend->fail_next = 1000;
  one_run run{fx};
  fx.advance(60s);
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::error);
  CHECK(run.ends->front().end.error.find("no sandbox today") != std::string::npos);
}

TEST_CASE("a tool called from code is journalled before and after, and answered", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("convert_units()")}),
    hang};
  one_run run{fx};
  auto& box = *fx.backend->boxes.front();
  box.call_tool(
    {call_id{1}, "convert_units", {{"value", 1}, {"from_unit", "km"}, {"to_unit", "m"}}});
  box.call_tool({call_id{2}, "no_such_tool", json::object()});
  fx.deliver();
  REQUIRE(box.answers.size() == 2);
  CHECK(box.answers[0].second == json(1000.0));
  CHECK(box.answers[1].second.error().code == errc::not_found);
  CHECK(fx.journal->kinds().ends_with("tool_requested tool_requested tool_replied tool_replied"));
  run.tell(run_cancel{"done"});
}

TEST_CASE("a journal that cannot be written ends the run and starts nothing", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("1")}), answer_final};
  fx.journal->failure = "the disk is full";
  one_run run{fx};
  CHECK(fx.model->requests.empty());
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().journal_error == "the disk is full");
}

TEST_CASE("a run outlives a restart of its model client", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("final_answer(1)")}),
    answer_final};
  auto client = fx.model_at->get();
  fx.model_at->set(nullptr);
  one_run run{fx};
  CHECK(run.ends->empty());
  fx.model_at->set(client);
  fx.advance(1s);
  CHECK(run.ends->size() == 1);
}

TEST_CASE("viewers see the run's events; without viewers none is made", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("final_answer(1)")}),
    answer_final};
  std::vector<std::string> seen;
  glue::post(fx.hub_at->get(), subscribe{"test",
                                         [&](const run_event& e) {
                                           seen.push_back(e.kind);
                                           return true;
                                         },
                                         {}});
  fx.deliver();
  one_run run{fx};
  CHECK(!seen.empty());
  CHECK(seen.front() == "run_started");
  CHECK(seen.back() == "run_ended");
}

TEST_CASE("viewers see a reply's text as it comes, before what follows from it", "[agent_actor]") {
  test::run_fixture fx{
    std::make_shared<test::scripted_endpoint>(std::vector<std::string>{code("final_answer(1)")}),
    answer_final};
  std::vector<std::pair<std::string, std::string>> seen;
  glue::post(fx.hub_at->get(), subscribe{"test",
                                         [&](const run_event& e) {
                                           seen.emplace_back(e.kind, string_or(e.payload, "text"));
                                           return true;
                                         },
                                         {}});
  fx.deliver();
  one_run run{fx};
  auto at = [&](std::string_view kind) {
    return std::find_if(seen.begin(), seen.end(), [&](auto& e) { return e.first == kind; });
  };
  REQUIRE(at("reply") != seen.end());
  CHECK(at("reply")->second == code("final_answer(1)"));
  CHECK(at("model_requested") < at("reply"));
  CHECK(at("reply") < at("model_replied"));
}

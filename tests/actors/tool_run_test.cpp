// A tool-calling agent, driven by its actor.
#include "runtime/agent/agent_machine.hpp"
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

tool_call_message convert(const std::string& id, json value) {
  return {id,
          "convert_units",
          dump_json({{"value", std::move(value)}, {"from_unit", "km"}, {"to_unit", "m"}}),
          {}};
}

model_reply calling(std::vector<tool_call_message> calls) {
  model_reply r;
  r.tool_calls = std::move(calls);
  r.finish_reason = "tool_calls";
  return r;
}

model_reply answering(const json& answer) {
  return calling({{"end", "final_answer", dump_json({{"answer", answer}}), {}}});
}

agent_options tool_calling() {
  agent_options o;
  o.kind = agent_kind::tool_calling;
  return o;
}

/// No code runs for such an agent: an open would be counted.
std::optional<snippet_outcome> nothing(const snippet&) {
  return std::nullopt;
}

struct tool_run : test::run_fixture {
  explicit tool_run(std::vector<model_reply> replies)
    : run_fixture{std::make_shared<test::scripted_endpoint>(std::move(replies)), nothing,
                  tool_calling()} {
    std::tie(owner, ends) = collector<run_finished>();
  }

  void start() {
    agent = spawn_agent(sys, context, {run_id{7}, "s1", {}, owner});
    glue::post(agent, run_start{{"How many metres?", {}}});
    deliver();
  }

  caf::actor owner;
  std::shared_ptr<std::vector<run_finished>> ends;
  caf::actor agent;
};

}  // namespace

TEST_CASE("a tool-calling run goes from task to answer without a sandbox", "[tool_run]") {
  tool_run run{{calling({convert("a", 1), convert("b", 2)}), answering(3000)}};
  run.start();
  REQUIRE(run.ends->size() == 1);
  auto& end = run.ends->front();
  CHECK(end.end.end == run_end::success);
  CHECK(end.end.answer == value{3000, "3000"});
  CHECK(end.tool_calls == 3);
  CHECK(end.sandboxes == 0);
  CHECK(run.backend->log->opened == 0);
  CHECK(run.journal->kinds()
        == "run_started model_requested model_replied action tool_requested tool_requested "
           "tool_replied tool_replied observation model_requested model_replied action "
           "tool_requested tool_replied final_answer run_ended");
  auto asked = json::parse("[" + run.model->requests.back() + "]");
  CHECK(asked[3]["tool_call_id"] == "a");
  CHECK(asked[3]["content"] == "1000.0");
  CHECK(asked[4]["content"] == "2000.0");
}

TEST_CASE("arguments are made to fit, or the model is told what to change", "[tool_run]") {
  tool_run run{{calling({convert("a", "2.5"), convert("b", "far")}), answering(1)}};
  run.start();
  auto asked = json::parse("[" + run.model->requests.back() + "]");
  CHECK(asked[3]["content"] == "2500.0");
  auto told = asked[4]["content"].get<std::string>();
  CHECK(told.starts_with("Error:\ninvalid_argument: convert_units: 'value' is a string (\"far\") "
                         "but must be number\n"));
}

TEST_CASE("each result is durable before the next decision", "[tool_run]") {
  tool_run run{{calling({convert("a", 1), convert("b", 2)}), answering(1)}};
  run.journal->hold = true;
  run.start();
  run.release_journal();
  CHECK(run.model->requests.size() == 1);
  CHECK(run.journal->kinds().ends_with("tool_requested tool_requested"));
  run.release_journal();
  CHECK(run.journal->kinds().ends_with("tool_requested tool_requested tool_replied"));
  run.release_journal();
  CHECK(run.journal->kinds().ends_with("tool_replied tool_replied observation model_requested"));
  CHECK(run.model->requests.size() == 1);
  run.release_journal();
  CHECK(run.model->requests.size() == 2);
  run.journal->hold = false;
  run.release_journal();
  run.release_journal();
  CHECK(run.ends->size() == 1);
}

TEST_CASE("a run's journal folds to the same end", "[tool_run]") {
  tool_run run{{calling({convert("a", 1), convert("b", "x")}), calling({}), answering("done")}};
  run.start();
  agent_machine folded{run.context->agent, run.context->encode, run_id{7}};
  std::vector<agent_command> last;
  for (auto& e : run.journal->events)
    if (auto event = event_from_json(e.kind, json::parse(e.payload)))
      last = folded.on(*event, run.clock.now());
  REQUIRE(folded.finished());
  CHECK(std::get<finish>(last.back()).answer == run.ends->front().end.answer);
  CHECK(std::get<finish>(last.back()).turns == 3);
}

TEST_CASE("a call waits for a tool host that is being restarted", "[tool_run]") {
  tool_run run{{calling({convert("a", 1)}), answering(1)}};
  auto host = run.host_at->get();
  run.host_at->set(nullptr);
  run.start();
  CHECK(run.ends->empty());
  run.host_at->set(host);
  run.advance(1s);
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::success);
}

TEST_CASE("a call that is lost with its host is told as unknown", "[tool_run]") {
  tool_run run{{calling({convert("a", 1)}), answering(1)}};
  auto dead = run.sys.spawn([](caf::event_based_actor* self) -> caf::behavior {
    return {[self](const tool_call&) -> caf::result<tool_answer> {
      self->quit(caf::exit_reason::kill);
      return self->make_response_promise<tool_answer>();
    }};
  });
  run.host_at->set(dead);
  run.start();
  auto asked = json::parse("[" + run.model->requests.back() + "]");
  CHECK(asked[3]["content"].get<std::string>().find("whether the call was carried out is not known")
        != std::string::npos);
}

TEST_CASE("cancelling a run while it waits for a tool ends it at once", "[tool_run]") {
  tool_run run{{calling({convert("a", 1)})}};
  auto held = std::make_shared<std::vector<caf::typed_response_promise<tool_answer>>>();
  auto silent = run.keep(run.sys.spawn([held](caf::event_based_actor* self) -> caf::behavior {
    return {[=](const tool_call&) -> caf::result<tool_answer> {
      return held->emplace_back(self->make_response_promise<tool_answer>());
    }};
  }));
  run.host_at->set(silent);
  run.start();
  CHECK(run.ends->empty());
  glue::post(run.agent, run_cancel{"enough"});
  run.deliver();
  REQUIRE(run.ends->size() == 1);
  CHECK(run.ends->front().end.end == run_end::cancelled);
}

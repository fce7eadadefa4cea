#include "actors/runs.hpp"
#include "actors/supervisor.hpp"
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct runs_fixture : test::run_fixture {
  explicit runs_fixture(runs_options options = {}, test::snippet_script script = answer)
    : run_fixture{std::make_shared<test::scripted_endpoint>([](const model_request&) {
                    return std::string{"<code>\nfinal_answer(1)\n</code>"};
                  }),
                  std::move(script)} {
    supervisor_options o;
    o.name = "agents";
    o.how = strategy::simple_one_for_one;
    put(agents_at, spawn_supervisor(sys, o, clock));
    runs = keep(spawn_runs(sys, agents_at, options));
    deliver();
  }

  static std::optional<snippet_outcome> answer(const snippet&) { return test::answered(1, "1"); }
  static std::optional<snippet_outcome> never_end(const snippet&) { return std::nullopt; }

  void submit(std::uint64_t run, const std::string& task = "task",
              std::shared_ptr<const agent_context> agent = nullptr) {
    run_order order;
    order.run = run_id{run};
    order.sample = "run-" + std::to_string(run);
    order.agent = agent ? agent : context;
    order.input.task = task;
    // Shared: what is open at the test's end is told after the members are gone.
    order.done = [all = all_ends, run](run_result r) { (*all)[run].push_back(std::move(r)); };
    glue::post(runs, run_submit{std::make_shared<const run_order>(std::move(order))});
    deliver();
  }

  /// The one end of a run.
  const run_result& end_of(std::uint64_t run) {
    REQUIRE(ends[run].size() == 1);
    return ends[run].front();
  }

  std::shared_ptr<address> agents_at = std::make_shared<address>();
  caf::actor runs;
  using ends_by_run = std::map<std::uint64_t, std::vector<run_result>>;
  std::shared_ptr<ends_by_run> all_ends = std::make_shared<ends_by_run>();
  ends_by_run& ends = *all_ends;
};

}  // namespace

TEST_CASE("a submitted run has one result, told once it is durable", "[runs]") {
  runs_fixture fx;
  fx.journal->hold = true;
  fx.submit(7);
  while (fx.ends[7].empty() && !fx.journal->held.empty())
    fx.release_journal();
  CHECK(fx.end_of(7).end == "success");
  REQUIRE(fx.journal->results.size() == 1);
  CHECK(fx.journal->results[0].run == run_id{7});
  CHECK(fx.journal->results[0].sample_id == "run-7");
}

TEST_CASE("more runs than may be open wait, in their order", "[runs]") {
  runs_fixture fx{{.max_concurrency = 2, .max_waiting = 2}, runs_fixture::never_end};
  for (std::uint64_t i = 1; i <= 5; ++i)
    fx.submit(i);
  CHECK(fx.backend->log->live == 2);
  CHECK(fx.end_of(5).end == "error");
  CHECK(fx.end_of(5).error.find("2 runs wait") != std::string::npos);
  glue::post(fx.runs, run_call_off{run_id{3}, "no"});
  glue::post(fx.runs, run_call_off{run_id{1}, "no"});
  fx.deliver();
  CHECK(fx.end_of(1).end == "cancelled");
  CHECK(fx.end_of(3).end == "cancelled");
  CHECK(fx.ends[4].empty());
  CHECK(fx.backend->log->live == 2);
}

TEST_CASE("an agent that crashes is its run's end, and is not started again", "[runs]") {
  runs_fixture fx;
  auto broken = std::make_shared<agent_context>(*fx.context);
  broken->encode = [](std::string& out, const chat_message& m, encoder_state before) {
    if (m.content.find("crash") != std::string::npos)
      throw std::runtime_error{"encoder bug"};
    return openai_codec().encoder()(out, m, before);
  };
  broken->start = react_loop::start_of(*broken->agent, broken->encode);
  fx.submit(1, "crash", broken);
  fx.submit(2);
  CHECK(fx.end_of(1).end == "error");
  CHECK(fx.end_of(1).error.find("its agent crashed") != std::string::npos);
  CHECK(fx.end_of(1).error.find("encoder bug") != std::string::npos);
  CHECK(fx.end_of(2).end == "success");
}

TEST_CASE("stop cancels all that is open, tells every end, then the actor goes", "[runs]") {
  runs_fixture fx{{.max_concurrency = 2}, runs_fixture::never_end};
  for (std::uint64_t i = 1; i <= 4; ++i)
    fx.submit(i);
  bool gone = false;
  fx.runs->attach_functor([&](const caf::error&) { gone = true; });
  glue::post(fx.runs, stop{});
  fx.deliver();
  for (std::uint64_t i = 1; i <= 4; ++i)
    CHECK(fx.end_of(i).end == "cancelled");
  CHECK(gone);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("when the actor that keeps runs is killed, every run is told of", "[runs]") {
  runs_fixture fx{{.max_concurrency = 1}, runs_fixture::never_end};
  fx.submit(1);
  fx.submit(2);
  caf::anon_send_exit(fx.runs, caf::exit_reason::kill);
  fx.deliver();
  CHECK(fx.end_of(1).end == "error");
  CHECK(fx.end_of(2).end == "error");
  CHECK(fx.backend->log->live == 0);  // its agent was told to end too
}

TEST_CASE("a journal that fails is the run's end", "[runs]") {
  runs_fixture fx;
  fx.journal->failure = "the disk is full";
  fx.submit(1);
  CHECK(fx.end_of(1).end == "error");
  CHECK(fx.end_of(1).error.find("the disk is full") != std::string::npos);
}

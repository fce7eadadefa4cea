// Several jobs in one runtime: what each may spend, and its turns at the model.
#include "runtime/agent/prompt.hpp"
#include "runtime/host/bench_parts.hpp"
#include "runtime/host/engine.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <future>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A model that needs so many turns, each a call of 10 tokens and more.
endpoint_maker model_of(std::uint32_t turns, millis latency) {
  return [turns, latency](http_client&, timers& clock) {
    json how{{"latency", {{"median_ms", latency.count()}, {"sigma", 0}}},
             {"default", measure::printing_reply()}};
    how["rules"] = json::array({{{"from_turn", turns - 1}, {"reply", measure::answering_reply()}}});
    auto script = mock_script::parse(dump_json(how));
    if (!script)
      return result<std::shared_ptr<endpoint>>{fail(script.error())};
    return result<std::shared_ptr<endpoint>>{make_mock_endpoint(*std::move(script), clock, 1)};
  };
}

std::unique_ptr<engine> runtime_with(std::uint32_t turns, model_client_options client = {},
                                     millis latency = millis{0}) {
  engine_options o;
  o.models.push_back({.endpoints = {{model_of(turns, latency)}}, .client = client});
  auto made = engine::start(
    std::move(o),
    [](reactor&) { return result<std::shared_ptr<executor>>{measure::make_instant_executor(100)}; },
    nullptr, {});
  REQUIRE(made);
  return std::move(*made);
}

/// A batch of equal samples that pays by its job.
struct job {
  job(engine& host, std::size_t samples, const job_options& how, std::size_t wide = 4) {
    auto tools = std::make_shared<tool_set>();
    REQUIRE(tools->add(final_answer_tool()));
    agent_options agent;
    agent.prompts = shipped_prompts();
    agent.tools = tools->specs();
    auto defined = define_agent(std::move(agent));
    REQUIRE(defined);
    batch_plan p;
    for (std::size_t i = 0; i < samples; ++i)
      p.items.push_back({"s" + std::to_string(i), 1, i});
    p.max_concurrency = wide;
    p.agent = host.make_context(*defined, tools, {}, how);
    p.input = [](const batch_item&) {
      return std::pair{run_started{"Work.", {}}, std::vector<sandbox_file>{}};
    };
    p.score = [this](const batch_item&, run_result& r) {
      ++results;
      ended_as_budget += r.end == "budget";
    };
    account = p.agent->budget;
    p.exhausted = [account = account] { return account->exhausted(); };
    p.done = [this](const batch_outcome& o) { over.set_value(o); };
    batch = host.start_batch(std::move(p));
  }

  batch_outcome wait() { return over.get_future().get(); }

  std::shared_ptr<budget_account> account;
  std::atomic<int> results{0}, ended_as_budget{0};
  std::promise<batch_outcome> over;
  caf::actor batch;
};

}  // namespace

TEST_CASE("a job whose budget is spent winds down, the other jobs of the runtime go on",
          "[runtime]") {
  auto host = runtime_with(3);
  job small{*host, 50, {.budget = {.calls = 10}}};
  job other{*host, 20, {}};
  auto first = small.wait();
  CHECK(first.end == batch_end::budget);
  CHECK(first.detail == "the job's budget is spent: 10 of 10 calls");
  auto second = other.wait();
  CHECK(second.end == batch_end::completed);
  CHECK(second.progress.done == 20);
  CHECK(second.progress.failed == 0);
  CHECK(small.account->spent().calls == 10);
  CHECK(host->budget().spent().calls == 10 + 20 * 3);
}

TEST_CASE("a run whose own budget is spent has a result that says so, its batch completes",
          "[runtime]") {
  auto host = runtime_with(5);
  job all{*host, 8, {.run_budget = {.calls = 3}}};
  auto end = all.wait();
  CHECK(end.end == batch_end::completed);
  CHECK(all.results == 8);
  CHECK(all.ended_as_budget == 8);
  CHECK(host->budget().spent().calls == 24);
}

TEST_CASE("a heavier job has more turns at a model that both wait for", "[runtime]") {
  model_client_options o;
  o.max_in_flight = 1;
  auto host = runtime_with(2, std::move(o), 1ms);  // so that both always wait for it
  job heavy{*host, 300, {.weight = 8}, 32};
  job light{*host, 300, {.weight = 1}, 32};
  CHECK(heavy.wait().progress.done == 300);
  CHECK(light.results < 150);  // about an eighth of the turns until now, and what it had alone
  CHECK(light.wait().progress.done == 300);
}

TEST_CASE("limits that are told to a running runtime hold", "[runtime]") {
  model_client_options o;
  o.rates = {60, 0};
  auto host = runtime_with(1, std::move(o));
  auto begun = steady_clock::now();
  job all{*host, 40, {}};
  host->tune({rate_settings{600'000, 0}, std::nullopt});
  CHECK(all.wait().progress.done == 40);
  CHECK(steady_clock::now() - begun < 20s);  // at 60 a minute it takes 40 s
}

#include "actors/batch.hpp"
#include "actors/supervisor.hpp"
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

std::optional<snippet_outcome> answer_all(const snippet&) {
  return test::answered(1, "1");
}

struct batch_fixture : test::run_fixture {
  batch_fixture(std::size_t samples, std::size_t width, test::snippet_script script = answer_all,
                std::uint32_t epochs = 1)
    : run_fixture{std::make_shared<test::scripted_endpoint>([this](const model_request&) {
                    if (crash_model_text.empty())
                      return std::string{"<code>\nfinal_answer(1)\n</code>"};
                    return crash_model_text;
                  }),
                  std::move(script)} {
    supervisor_options o;
    o.name = "agents";
    o.how = strategy::simple_one_for_one;
    agents = keep(spawn_supervisor(sys, o, clock));
    for (std::uint32_t e = 1; e <= epochs; ++e)
      for (std::size_t i = 0; i < samples; ++i)
        plan.items.push_back({"s" + std::to_string(i), e, i});
    plan.max_concurrency = width;
    plan.agent = context;
    plan.before.total = plan.items.size();
    plan.input = [](const batch_item& i) {
      return std::pair{run_started{"task of " + i.sample, {}}, std::vector<sandbox_file>{}};
    };
    plan.score = [](const batch_item&, run_result& r) { r.score = r.answer == "1" ? 1.0 : 0.0; };
    plan.done = [this](batch_outcome how) { ends.push_back(std::move(how)); };
  }

  caf::actor start() {
    auto b = spawn_batch(sys, plan, agents);
    deliver();
    return b;
  }

  std::string crash_model_text;
  caf::actor agents;
  batch_plan plan;
  std::vector<batch_outcome> ends;
};

}  // namespace

TEST_CASE("every sample gets exactly one scored result", "[batch]") {
  batch_fixture fx{20, 4, answer_all, 3};
  fx.start();
  REQUIRE(fx.ends.size() == 1);
  CHECK(fx.ends[0].end == batch_end::completed);
  CHECK(fx.ends[0].progress.done == 60);
  CHECK(fx.ends[0].progress.score_sum == 60);
  std::set<std::pair<std::string, std::uint32_t>> seen;
  for (auto& r : fx.journal->results)
    CHECK(seen.emplace(r.sample_id, r.epoch).second);
  CHECK(seen.size() == 60);
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("no more runs are open than asked for", "[batch]") {
  batch_fixture fx{10, 3, [](const snippet&) { return std::nullopt; }};
  auto b = fx.start();
  CHECK(fx.backend->log->live == 3);
  glue::post(b, batch_cancel{"enough"});
  fx.deliver();
}

TEST_CASE("stop takes no new samples and keeps the results of the running ones", "[batch]") {
  batch_fixture fx{10, 3};
  fx.backend->hold = true;
  auto b = fx.start();
  glue::post(b, batch_stop{});
  fx.deliver();
  CHECK(fx.ends.empty());
  for (int i = 0; i < 3; ++i)
    fx.backend->release();
  fx.deliver();
  REQUIRE(fx.ends.size() == 1);
  CHECK(fx.ends[0].end == batch_end::stopped);
  CHECK(fx.journal->results.size() == 3);
}

TEST_CASE("cancel ends the running ones without a result, so that they run again later",
          "[batch]") {
  batch_fixture fx{10, 3, [](const snippet&) { return std::nullopt; }};
  auto b = fx.start();
  glue::post(b, batch_cancel{"twice Ctrl-C"});
  fx.deliver();
  REQUIRE(fx.ends.size() == 1);
  CHECK(fx.ends[0].end == batch_end::cancelled);
  CHECK(fx.journal->results.empty());
  CHECK(fx.backend->log->live == 0);
}

TEST_CASE("a sample that crashes its agent is run once more, then quarantined", "[batch]") {
  batch_fixture fx{3, 1};
  // A bug of ours that one sample's text triggers must only cost that sample.
  auto inner = fx.plan.input;
  int starts = 0;
  fx.plan.input = [&, inner](const batch_item& i) {
    auto made = inner(i);
    if (i.sample == "s1") {
      ++starts;
      made.first.task = "crash";
    }
    return made;
  };
  auto context = std::make_shared<agent_context>(*fx.context);
  context->encode = [](std::string& out, const chat_message& m, encoder_state before) {
    if (m.content.find("crash") != std::string::npos)
      throw std::runtime_error{"encoder bug"};
    return openai_codec().encoder()(out, m, before);
  };
  context->start = react_loop::start_of(*context->agent, context->encode);
  fx.plan.agent = context;
  fx.start();
  REQUIRE(fx.ends.size() == 1);
  CHECK(starts == 2);
  REQUIRE(fx.journal->results.size() == 3);
  for (auto& r : fx.journal->results)
    if (r.sample_id == "s1") {
      CHECK(r.end == "error");
      CHECK(r.error.starts_with("quarantined"));
    } else {
      CHECK(r.end == "success");
    }
}

TEST_CASE("a journal that fails ends the batch with its words", "[batch]") {
  batch_fixture fx{10, 3};
  fx.journal->failure = "the disk is full";
  fx.start();
  REQUIRE(fx.ends.size() == 1);
  CHECK(fx.ends[0].end == batch_end::journal_failed);
  CHECK(fx.ends[0].detail == "the disk is full");
  CHECK(fx.journal->results.empty());
}

TEST_CASE("an empty batch ends at once", "[batch]") {
  batch_fixture fx{0, 3};
  fx.start();
  REQUIRE(fx.ends.size() == 1);
  CHECK(fx.ends[0].end == batch_end::completed);
}

TEST_CASE("run ids go on above those of earlier sessions", "[batch]") {
  batch_fixture fx{2, 1};
  for (int used = 1; used < 100; ++used)
    static_cast<void>(fx.context->numbers->take());
  fx.start();
  CHECK(fx.journal->results[0].run == run_id{100});
  CHECK(fx.journal->results[1].run == run_id{101});
}

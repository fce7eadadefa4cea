#include "actors/reply_keeper.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A shelf in memory that tells what was done with it.
class memory_shelf final : public reply_shelf {
public:
  std::optional<model_outcome> find(const request_identity& r, std::uint32_t draw) override {
    auto it = kept.find({r.body, draw});
    return it == kept.end() ? std::nullopt : std::optional{it->second};
  }
  void keep(const request_identity& r, std::uint32_t draw, const model_outcome& o) override {
    kept.insert_or_assign({r.body, draw}, o);
  }
  void flush() override { ++flushes; }

  std::map<std::pair<std::string, std::uint32_t>, model_outcome> kept;
  int flushes = 0;
};

/// A model client whose answers the test gives by hand.
struct manual_client {
  struct seen {
    run_id run;
    caf::typed_response_promise<model_answer> answer;
  };

  caf::actor spawn(test::actor_fixture& fx) {
    return fx.keep(fx.sys.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](model_ask& x) -> caf::result<model_answer> {
                auto p = self->make_response_promise<model_answer>();
                asked.push_back({x.request.run, p});
                return p;
              },
              [this](const model_cancel& x) { cancelled.push_back(x.run); },
              [this](std::uint64_t which, model_answer& x) {
                asked[which].answer.deliver(std::move(x));
              }};
    }));
  }

  std::vector<seen> asked;
  std::vector<run_id> cancelled;
};

struct keeper_fixture : test::actor_fixture {
  keeper_fixture() {
    client = model.spawn(*this);
    at->set(client);
    keeper = keep(spawn_reply_keeper(
      sys, at, shelf,
      {.format = make_codec({}), .base = "https://api.example/v1", .own_thread = false}, stats,
      clock));
  }

  auto call(std::uint64_t run, const std::string& text, std::uint32_t draw = 0,
            caf::actor viewer = {}) {
    transcript t{openai_codec().encoder()};
    t.append({role::user, text});
    model_ask m;
    m.request.settings = settings;
    m.request.messages = t.view();
    m.request.run = run_id{run};
    m.request.draw = draw;
    m.viewer = std::move(viewer);
    auto answer = ask<model_answer>(keeper, std::move(m));
    deliver();
    return answer;
  }

  void reply(std::size_t which, const std::string& text) {
    model_reply r;
    r.text = text;
    caf::anon_send(client, std::uint64_t{which}, model_answer{r});
    deliver();
  }

  void fail_with(std::size_t which, failure_class kind) {
    caf::anon_send(client, std::uint64_t{which},
                   model_answer{tl::unexpected(model_failure{kind, "no", {}, 2})});
    deliver();
  }

  std::shared_ptr<const model_settings> settings =
    std::make_shared<const model_settings>(model_settings{.model = "m"});
  std::shared_ptr<address> at = std::make_shared<address>();
  std::shared_ptr<memory_shelf> shelf = std::make_shared<memory_shelf>();
  std::shared_ptr<reply_keeper_stats> stats = std::make_shared<reply_keeper_stats>();
  manual_client model;
  caf::actor client;
  caf::actor keeper;
};

template <class Answer>
const model_reply& reply_in(const Answer& answer) {
  REQUIRE(*answer);
  REQUIRE(**answer);
  REQUIRE((**answer)->outcome);
  return *(**answer)->outcome;
}

}  // namespace

TEST_CASE("a request is asked once and found from then on", "[reply_keeper]") {
  keeper_fixture fx;
  auto first = fx.call(1, "2+2?");
  REQUIRE(fx.model.asked.size() == 1);
  CHECK_FALSE(*first);
  fx.reply(0, "4");
  CHECK(reply_in(first).text == "4");
  CHECK(reply_in(first).attempts == 1);
  auto second = fx.call(2, "2+2?");
  CHECK(reply_in(second).text == "4");
  CHECK(fx.model.asked.size() == 1);
  CHECK(fx.stats->found == 1);
  CHECK(fx.stats->asked == 1);
}

TEST_CASE("another draw of the same request is asked for anew", "[reply_keeper]") {
  keeper_fixture fx;
  auto one = fx.call(1, "dice", 1);
  fx.reply(0, "3");
  auto two = fx.call(2, "dice", 2);
  CHECK(fx.model.asked.size() == 2);
  fx.reply(1, "5");
  CHECK(reply_in(two).text == "5");
}

TEST_CASE("runs that ask the same at once share one call, and pay once", "[reply_keeper]") {
  keeper_fixture fx;
  auto [viewer, seen] = fx.collector<model_seen>();
  auto first = fx.call(1, "2+2?");
  auto second = fx.call(2, "2+2?", 0, viewer);
  CHECK(fx.model.asked.size() == 1);
  fx.reply(0, "4");
  CHECK(reply_in(first).attempts == 1);
  CHECK(reply_in(second).text == "4");
  CHECK(reply_in(second).attempts == 0);
  REQUIRE(seen->size() == 1);
  CHECK(seen->front().pieces.front().text == "4");
  CHECK(fx.stats->shared == 1);
}

TEST_CASE("when the asker of a shared call is cancelled, the others get theirs", "[reply_keeper]") {
  keeper_fixture fx;
  auto first = fx.call(1, "x");
  auto second = fx.call(2, "x");
  caf::anon_send(fx.keeper, model_cancel{run_id{1}});
  fx.deliver();
  CHECK(fx.model.cancelled == std::vector{run_id{1}});
  fx.fail_with(0, failure_class::cancelled);
  REQUIRE(*first);
  CHECK((**first)->outcome.error().kind == failure_class::cancelled);
  REQUIRE(fx.model.asked.size() == 2);
  CHECK(fx.model.asked[1].run == run_id{2});
  fx.reply(1, "y");
  CHECK(reply_in(second).text == "y");
  CHECK(fx.shelf->kept.size() == 1);
}

TEST_CASE("one that waits for another's call can be cancelled alone", "[reply_keeper]") {
  keeper_fixture fx;
  auto first = fx.call(1, "x");
  auto second = fx.call(2, "x");
  caf::anon_send(fx.keeper, model_cancel{run_id{2}});
  fx.deliver();
  CHECK(fx.model.cancelled.empty());
  REQUIRE(*second);
  CHECK((**second)->outcome.error().kind == failure_class::cancelled);
  fx.reply(0, "y");
  CHECK(reply_in(first).text == "y");
}

TEST_CASE("a failure is everybody's, and each asks again later", "[reply_keeper]") {
  keeper_fixture fx;
  fx.shelf->kept.clear();
  auto first = fx.call(1, "x");
  auto second = fx.call(2, "x");
  fx.fail_with(0, failure_class::quota);
  for (const auto& one : {first, second}) {
    REQUIRE(*one);
    CHECK((**one)->outcome.error().kind == failure_class::quota);
  }
  CHECK((**second)->outcome.error().attempts == 0);
}

TEST_CASE("without a model client the asker is told so, as by an empty address", "[reply_keeper]") {
  keeper_fixture fx;
  fx.at->set(nullptr);
  auto answer = fx.call(1, "x");
  REQUIRE(*answer);
  REQUIRE_FALSE(**answer);
  CHECK((*answer)->error().code == errc::unavailable);
}

TEST_CASE("what was kept is made durable soon, and when the keeper stops", "[reply_keeper]") {
  keeper_fixture fx;
  auto one = fx.call(1, "x");
  fx.reply(0, "y");
  CHECK(fx.shelf->flushes == 0);
  fx.advance(200ms);
  CHECK(fx.shelf->flushes == 1);
  auto two = fx.call(1, "z");
  fx.reply(1, "y");
  caf::anon_send(fx.keeper, stop{});
  fx.deliver();
  CHECK(fx.shelf->flushes == 2);
}

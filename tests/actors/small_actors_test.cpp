#include "actors/event_hub.hpp"
#include "actors/journal_writer.hpp"
#include "actors/tool_host.hpp"
#include "runtime/journal/journal_thread.hpp"
#include "tests/support/actor_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <latch>

using namespace troupe;

TEST_CASE("a slow viewer is dropped, the others hear everything", "[event_hub]") {
  test::actor_fixture fx;
  auto interest = std::make_shared<hub_interest>();
  auto hub = fx.keep(spawn_event_hub(fx.sys, interest));
  int slow = 0, quick = 0;
  glue::post(hub, subscribe{"slow", [&](const run_event&) { return ++slow < 2; }, {}});
  glue::post(hub, subscribe{"quick", [&](const run_event&) { return ++quick > 0; }, {}});
  fx.deliver();
  CHECK(interest->events);
  for (int i = 0; i < 5; ++i)
    glue::post(hub, run_event{run_id{1}, "s", "note", {}});
  fx.deliver();
  CHECK(slow == 2);
  CHECK(quick == 5);
}

TEST_CASE("a batch without viewers is told so", "[event_hub]") {
  test::actor_fixture fx;
  auto interest = std::make_shared<hub_interest>();
  auto hub = fx.keep(spawn_event_hub(fx.sys, interest));
  glue::post(hub, subscribe{"progress only", {}, [](const batch_progress&) { return true; }});
  fx.deliver();
  CHECK(!interest->events);
  glue::post(hub, subscribe{"once", [](const run_event&) { return false; }, {}});
  fx.deliver();
  CHECK(interest->events);
  glue::post(hub, run_event{});
  fx.deliver();
  CHECK(!interest->events);
}

TEST_CASE("a tool host answers with the tool's value, or its error, or that there is none",
          "[tool_host]") {
  test::actor_fixture fx;
  auto host = fx.keep(spawn_tool_host(fx.sys));
  auto tools = std::make_shared<tool_set>();
  tool twice;
  twice.spec.name = "twice";
  twice.spec.description = "Doubles a number.";
  twice.spec.parameters = ordered_json::parse(
    R"({"type":"object","properties":{"n":{"type":"number"}},"required":["n"]})");
  twice.call = [](const json& a, const tool_context&) -> result<json> {
    if (a["n"] == 13)
      throw std::runtime_error{"unlucky"};
    return json(a["n"].get<double>() * 2);
  };
  REQUIRE(tools->add(twice));
  auto call = [&](const std::string& name, json arguments) {
    auto answer = fx.ask<tool_answer>(
      host, tool_call{tools, name, std::move(arguments), {run_id{1}, call_id{7}, never}});
    fx.deliver();
    CHECK((**answer)->id == call_id{7});
    return (**answer)->value;
  };
  CHECK(call("twice", {{"n", 21}}) == json(42.0));
  CHECK(call("twice", {{"n", "x"}}).error().code == errc::invalid_argument);
  CHECK(call("thrice", json::object()).error().code == errc::not_found);
  CHECK(call("twice", {{"n", 13}}).error().detail.find("unlucky") != std::string::npos);
  CHECK(call("twice", {{"n", 1}}) == json(2.0));
}

TEST_CASE("a journal append is answered when it is durable, in order", "[journal_writer]") {
  auto dir = std::filesystem::temp_directory_path() / ("troupe-writer-" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  auto path = (dir / "j.db").string();
  {
    test::actor_fixture fx;
    auto opened = journal::open(path);
    REQUIRE(opened);
    journal_thread thread{std::move(*opened)};
    auto writer = fx.keep(spawn_journal_writer(fx.sys, thread));
    std::vector<std::shared_ptr<std::optional<result<journal_durable>>>> answers;
    for (std::uint32_t i = 1; i <= 20; ++i) {
      auto entry = std::make_shared<journal_entry>();
      entry->events.push_back({run_id{1}, i, wall_micros(), "note", "{}"});
      answers.push_back(fx.ask<journal_durable>(writer, journal_append{entry}));
    }
    fx.deliver();
    thread.flush_blocking();
    fx.deliver();
    for (auto& a : answers)
      CHECK((a->has_value() && (*a)->has_value()));
  }
  auto reader = journal::open_readonly(path);
  REQUIRE(reader);
  auto events = (*reader)->events(run_id{1});
  REQUIRE(events);
  CHECK(events->size() == 20);
  std::filesystem::remove_all(dir);
}

#include "runtime/agent/managed_agent.hpp"
#include "tests/agent/agent_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::shared_ptr<const agent_definition> helper() {
  auto o = options_for_tests();
  o.name = "helper";
  o.description = "Helps.";
  auto made = define_agent(std::move(o));
  REQUIRE(made);
  return *made;
}

finish ended(run_end end, std::optional<value> answer, std::string error = "") {
  return {.end = end, .answer = std::move(answer), .error = std::move(error)};
}

}  // namespace

TEST_CASE("an agent is a tool that takes a task and further values", "[managed]") {
  auto tool = managed_agent_tool(helper()->options);
  CHECK(tool.name == "helper");
  CHECK(tool.description == "Helps.");
  CHECK(tool.own_time);
  CHECK(tool.parameters["required"] == json{"task"});
  CHECK(tool.parameters["properties"]["additional_args"]["type"] == "object");
}

TEST_CASE("a managed agent's task has the further values as JSON beneath", "[managed]") {
  auto child = helper();
  auto plain = managed_task(*child, {{"task", "Count."}});
  CHECK(contains(plain, "helper"));
  CHECK(contains(plain, "Count."));
  CHECK(managed_task(*child, {{"task", "Count."}, {"additional_args", json::object()}}) == plain);
  auto more = managed_task(*child, {{"task", "Count."}, {"additional_args", {{"n", 3}}}});
  CHECK(more.starts_with(plain));
  CHECK(contains(more, R"({"n":3})"));
}

TEST_CASE("what a managed agent answers reaches its manager", "[managed]") {
  auto child = helper();
  auto text = managed_outcome(*child, ended(run_end::success, value{"seven", "seven"}));
  REQUIRE(text);
  CHECK(contains(text->get<std::string>(), "seven"));
  CHECK(contains(text->get<std::string>(), "helper"));
  CHECK(managed_outcome(*child, ended(run_end::success, value{json::array({1, 2}), "[1, 2]"}))
        == json::array({1, 2}));
  auto forced =
    managed_outcome(*child, ended(run_end::max_steps, value{json::array({1}), "[1]"}, "no answer"));
  REQUIRE(forced);
  CHECK(contains(forced->get<std::string>(), "ended as max_steps (no answer)"));
  CHECK(contains(forced->get<std::string>(), "[1]"));
}

TEST_CASE("a managed agent's end without an answer is told as what it is", "[managed]") {
  auto child = helper();
  struct {
    run_end end;
    errc code;
    std::string_view says;
  } const ends[] = {{run_end::cancelled, errc::cancelled, "cancelled"},
                    {run_end::deadline, errc::timeout, "deadline"},
                    {run_end::budget, errc::over_budget, "budget"},
                    {run_end::max_steps, errc::unavailable, "max_steps"},
                    {run_end::stuck, errc::unavailable, "stuck"},
                    {run_end::error, errc::unavailable, "error"}};
  for (const auto& [end, code, says] : ends) {
    auto outcome = managed_outcome(*child, ended(end, std::nullopt, "that is why"));
    CAPTURE(says);
    REQUIRE(!outcome);
    CHECK(outcome.error().code == code);
    CHECK(contains(outcome.error().detail,
                   "the agent 'helper' ended as " + std::string{says} + ": that is why"));
  }
}

TEST_CASE("a manager's sums hold what its agents have spent", "[managed]") {
  auto child = ended(run_end::success, std::nullopt);
  child.tokens = {.input = 5, .output = 2, .untold = 1};
  child.sandbox = {.cpu = micros{7}, .max_rss_bytes = 9};
  child.model_attempts = 3;
  finish manager;
  manager.tokens = {.input = 1};
  manager.sandbox.max_rss_bytes = 4;
  manager += usage_of(child);
  CHECK(manager.tokens == token_usage{.input = 6, .output = 2, .untold = 1});
  CHECK(manager.sandbox.cpu == micros{7});
  CHECK(manager.sandbox.max_rss_bytes == 9);
  CHECK(manager.model_attempts == 3);
}

TEST_CASE("a refused import is known by its error", "[snippet]") {
  snippet_error e{.type = "ImportError",
                  .message = "Import of 'a.b' is not allowed. Allowed imports: math"};
  CHECK(refused_import(e) == "a.b");
  e.message = "No module named 'a'";
  CHECK(!refused_import(e));
  e.message = "Import of 'a' is not";
  CHECK(!refused_import(e));
  e = {.type = "ValueError", .message = "Import of 'a' is not allowed. Allowed imports: math"};
  CHECK(!refused_import(e));
}

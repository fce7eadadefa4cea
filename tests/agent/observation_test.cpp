#include "runtime/agent/observation.hpp"
#include "tests/agent/agent_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

std::string text_of(const snippet_outcome& x, std::string_view code = "") {
  return observation_text(x, code, {});
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an observation shows what was printed, then the last value", "[observation]") {
  auto x = test::printed("one\ntwo\n").outcome;
  x.result = value{3, "3"};
  CHECK(text_of(x) == "Observation:\nExecution logs:\none\ntwo\nLast output from code snippet:\n3");
  x.result.reset();
  CHECK(text_of(x) == "Observation:\nExecution logs:\none\ntwo");
  CHECK(text_of({}) == "Observation:\nThe code ran without error and printed nothing.");
}

TEST_CASE("long logs and values lose their middle, with a notice", "[observation]") {
  auto x = test::printed(std::string(300, 'a') + std::string(300, 'b')).outcome;
  x.logs_dropped = 12;
  x.result = value{"", std::string(1000, 'v')};
  auto text = observation_text(x, "", {100, 10, 10});
  CHECK(
    contains(text, std::string(50, 'a') + "\n... [500 bytes cut] ...\n" + std::string(50, 'b')));
  CHECK(contains(text, "12 more bytes of output were dropped"));
  CHECK(contains(text, "vvvvv\n... [990 bytes cut] ...\nvvvvv"));
}

TEST_CASE("an exception is shown after the prints, with type, message, line and segment",
          "[observation]") {
  auto x = test::raised("ZeroDivisionError", "division by zero", 2, "before\n").outcome;
  auto text = text_of(x, "x = 0\n  print(1 / x)\ny = 2");
  CHECK(text.starts_with("Observation:\nExecution logs:\nbefore\nError:\n"
                         "ZeroDivisionError: division by zero\nAt line 2: print(1 / x)\n"));
  x.error->line = 99;
  CHECK(!contains(text_of(x, "x = 0"), "At line"));
}

TEST_CASE("a traceback is shown when it tells more than the line", "[observation]") {
  auto x = test::raised("ValueError", "no", 1).outcome;
  x.error->traceback = "  File \"<snippet>\", line 1, in <module>\n";
  CHECK(!contains(text_of(x, "f()"), "<module>"));
  x.error->traceback += "  File \"<snippet>\", line 3, in f\n";
  CHECK(contains(text_of(x, "f()"), "line 3, in f"));
  auto s = test::raised("SyntaxError", "invalid syntax", 1).outcome;
  s.error->traceback = "    x = = 1\n        ^\n";
  CHECK(contains(text_of(s, "x = = 1"), "        ^"));
}

TEST_CASE("each end of a sandbox says why, and that the variables are lost", "[observation]") {
  struct {
    snippet_end end;
    std::string_view says;
  } const ends[] = {{snippet_end::hard_timeout, "time limit"},
                    {snippet_end::memory, "memory"},
                    {snippet_end::output_limit, "output"},
                    {snippet_end::crashed, "crashed"},
                    {snippet_end::exited, "ended itself"},
                    {snippet_end::killed, "killed"},
                    {snippet_end::protocol, "could not be understood"}};
  for (auto& [end, says] : ends) {
    auto x = test::ended(end, "limit 512 MiB").outcome;
    x.logs = "partial\n";
    auto text = text_of(x);
    CAPTURE(text);
    CHECK(text.starts_with("Observation:\nExecution logs:\npartial\nError:\n"));
    CHECK(contains(text, says));
    CHECK(contains(text, "(limit 512 MiB)"));
    CHECK(contains(text, "are lost"));
    CHECK(contains(text, "fresh"));
  }
}

TEST_CASE("after a soft timeout the variables are kept, and it says so", "[observation]") {
  auto text = text_of(test::ended(snippet_end::soft_timeout).outcome);
  CHECK(contains(text, "time limit"));
  CHECK(contains(text, "are kept"));
  CHECK(!contains(text, "lost"));
}

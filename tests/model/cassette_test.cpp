#include "runtime/model/cassette.hpp"
#include "runtime/model/json_difference.hpp"
#include "runtime/model/secrets.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

request_identity asking(const std::string& text, const std::string& model = "m") {
  return {"https://api.example/v1", "/chat/completions",
          R"({"model":")" + model + R"(","messages":[{"role":"system","content":"You are terse."},)"
            + R"({"role":"user","content":)" + dump_json(text) + "}]}"};
}

model_outcome saying(std::string text) {
  model_reply r;
  r.text = std::move(text);
  r.model = "m-2026";
  r.finish_reason = "stop";
  r.usage = {12, 3, 0, 0};
  r.attempts = 4;
  return r;
}

std::unique_ptr<cassette_player> playing(const std::string& tape, cassette_match how,
                                         std::vector<std::string> known = {}) {
  auto p = cassette_player::load(tape, "tape.jsonl", how, std::move(known));
  REQUIRE(p);
  return *std::move(p);
}

std::string text_of(const model_outcome& x) {
  return x ? x->text : "failure: " + x.error().detail;
}

error load_error(const std::string& tape) {
  auto p = cassette_player::load(tape, "tape.jsonl", cassette_match::exact, {});
  REQUIRE_FALSE(p);
  return p.error();
}

}  // namespace

TEST_CASE("a cassette gives back what was recorded, as a reply that costs nothing", "[cassette]") {
  auto tape = cassette_head() + cassette_line(asking("2+2?"), saying("4"), {})
              + cassette_line(asking("3+3?"), saying("6"), {});
  auto p = playing(tape, cassette_match::exact);
  CHECK(p->size() == 2);
  auto reply = p->play(asking("3+3?"));
  REQUIRE(reply);
  CHECK(reply->text == "6");
  CHECK(reply->model == "m-2026");
  CHECK(reply->usage == token_usage{12, 3, 0, 0});
  CHECK(reply->attempts == 0);
  CHECK(text_of(p->play(asking("2+2?"))) == "4");
}

TEST_CASE("a failure is recorded and played as the same failure", "[cassette]") {
  model_outcome refused =
    tl::unexpected(model_failure{failure_class::bad_request, "too long", {}, 1});
  auto p =
    playing(cassette_head() + cassette_line(asking("x"), refused, {}), cassette_match::exact);
  auto again = p->play(asking("x"));
  REQUIRE_FALSE(again);
  CHECK(again.error().kind == failure_class::bad_request);
  CHECK(again.error().detail == "too long");
}

TEST_CASE("the same request gets its recorded replies in turn, then none", "[cassette]") {
  auto tape = cassette_head() + cassette_line(asking("dice"), saying("1"), {})
              + cassette_line(asking("dice"), saying("6"), {});
  auto exact = playing(tape, cassette_match::exact);
  CHECK(text_of(exact->play(asking("dice"))) == "1");
  CHECK(text_of(exact->play(asking("dice"))) == "6");
  CHECK_THAT(text_of(exact->play(asking("dice"))),
             ContainsSubstring("the 2 recorded for this "
                               "request (line 3) are used up"));
  auto loose = playing(tape, cassette_match::loose);
  for (const auto* want : {"1", "6", "1", "6"})
    CHECK(text_of(loose->play(asking("dice"))) == want);
}

TEST_CASE("a loose match looks at what the messages say and at nothing else", "[cassette]") {
  request_identity recorded{
    "https://one.example", "/chat/completions",
    R"({"model":"a","temperature":1,"messages":[{"role":"tool","tool_call_id":"call_1","content":"4  4\n"}]})"};
  request_identity asked{
    "https://two.example", "/chat/completions",
    R"({"messages":[{"content":"4 4","tool_call_id":"call_77","role":"tool"}],"model":"b"})"};
  auto tape = cassette_head() + cassette_line(recorded, saying("yes"), {});
  CHECK(text_of(playing(tape, cassette_match::loose)->play(asked)) == "yes");
  CHECK_FALSE(playing(tape, cassette_match::exact)->play(asked));
  auto other = asked;
  other.body = R"({"messages":[{"content":"4 5","tool_call_id":"call_77","role":"tool"}]})";
  CHECK_FALSE(playing(tape, cassette_match::loose)->play(other));
}

TEST_CASE("a miss shows where the nearest recorded request differs", "[cassette]") {
  auto tape =
    cassette_head() + cassette_line(asking("Who was born in 1901?"), saying("a"), {})
    + cassette_line({"", "/chat/completions", R"({"messages":[{"role":"user","content":"else"}]})"},
                    saying("b"), {});
  auto p = playing(tape, cassette_match::exact);
  auto miss = p->play(asking("Who was born in 1902?", "m2"));
  REQUIRE_FALSE(miss);
  CHECK(miss.error().kind == failure_class::unknown);  // final: no retry brings it
  CHECK(miss.error().detail
        == "tape.jsonl has no reply for this request: the nearest one, line 2, differs:\n"
           "  messages[1].content: \"Who was born in 1901?\" is \"Who was born in 1902?\"\n"
           "  model: \"m\" is \"m2\"");
}

TEST_CASE("keys do not get into a cassette, and it is found without them", "[cassette]") {
  auto secret = "s3cret-value-of-mine";
  auto request = asking("My key is sk-abcdefghijklmnop1234 and " + std::string{secret});
  auto line = cassette_line(request, saying("Bearer abcdefghijklmnopqrst.uv"), {secret});
  CHECK_THAT(line, !ContainsSubstring("sk-abc") && !ContainsSubstring(secret)
                     && !ContainsSubstring("abcdefghijklmnopqrst"));
  CHECK_THAT(line, ContainsSubstring("My key is [removed] and [removed]"));
  auto p = playing(cassette_head() + line, cassette_match::exact, {secret});
  CHECK(text_of(p->play(request)) == "[removed]");
}

TEST_CASE("only what looks like a whole key is taken for one", "[cassette]") {
  CHECK(without_secrets("risk-averse-behaviour-of-agents task-0123456789012345678", {})
        == "risk-averse-behaviour-of-agents task-0123456789012345678");
  CHECK(without_secrets("sk-short hf_", {}) == "sk-short hf_");
  CHECK(without_secrets("(hf_ABCDEFGHIJKLMNOPQRST)", {}) == "([removed])");
  CHECK(without_secrets("a short one", {"short"}) == "a short one");
}

TEST_CASE("a file that is no cassette, or a damaged one, is told with its line", "[cassette]") {
  CHECK(
    load_error("").detail
    == "tape.jsonl, line 1: this is no cassette: it does not begin with {\"troupe_cassette\": 1}");
  CHECK(load_error("{\"troupe_cassette\": 2}\n").code == errc::invalid_argument);
  CHECK_THAT(load_error(cassette_head() + "\n{\"request\": {}, \"reply\": {\"text\": 1}}\n").detail,
             ContainsSubstring("tape.jsonl, line 3: reply.text is not a string"));
  CHECK_THAT(load_error(cassette_head() + "{\"request\": {}}").detail,
             ContainsSubstring("line 2: there is neither \"reply\" nor \"failure\""));
  CHECK_THAT(load_error(cassette_head() + "{\"request\"\n").detail, ContainsSubstring("line 2: "));
  CHECK_THAT(load_error(cassette_head() + "[]").detail,
             ContainsSubstring("line 2: \"request\" is not an object"));
}

TEST_CASE("a recording that was cut in its last line plays what is whole", "[cassette]") {
  CHECK(playing(cassette_head() + "{\"request\": {\"a", cassette_match::exact));
}

TEST_CASE("differences are named by their place, long texts around the first one", "[cassette]") {
  auto before = json::parse(R"({"a":[1,2],"gone":true,"t":"x"})");
  auto after = json::parse(R"({"a":[1,3,4],"new":null,"t":"x"})");
  CHECK(differences(before, after, 9)
        == std::vector<std::string>{"a[1]: 2 is 3", "a has 3 elements, not 2", "gone is missing",
                                    "new is new: null"});
  CHECK(differences(before, after, 1).size() == 1);
  CHECK(differences(before, before, 9).empty());
  std::string same(200, 's');
  auto lines = differences(json(same + "1é" + same), json(same + "2é" + same), 9);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 250);
  CHECK_THAT(lines[0], ContainsSubstring("s1é") && ContainsSubstring("s2é"));
}

#include "runtime/eval/number_text.hpp"
#include "runtime/eval/scorer.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cmath>

using namespace troupe;

namespace {

std::optional<double> score(scorer_kind kind, std::string_view answer,
                            const std::vector<std::string>& targets, bool ignore_case = false) {
  scorer_options o;
  o.kind = kind;
  o.ignore_case = ignore_case;
  return score_answer(o, answer, targets).score;
}

constexpr auto exact = scorer_kind::exact;
constexpr auto includes = scorer_kind::includes;
constexpr auto regex = scorer_kind::regex;
constexpr auto numeric = scorer_kind::numeric;

double number(std::string_view text) {
  auto n = read_number(text);
  return n ? n->value : std::nan("");
}

}  // namespace

TEST_CASE("exact is equal after trimming, and nothing more", "[scorer]") {
  CHECK(score(exact, "  Paris\n", {"Paris"}) == 1.0);
  CHECK(score(exact, "\xC2\xA0Paris\xE3\x80\x80", {"Paris"}) == 1.0);
  CHECK(score(exact, "paris", {"Paris"}) == 0.0);
  CHECK(score(exact, "Paris.", {"Paris"}) == 0.0);
  CHECK(score(exact, "4", {"3", "4"}) == 1.0);
  CHECK(score(exact, "\xC3\x89T\xC3\x89", {"\xC3\xA9t\xC3\xA9"}, true) == 1.0);
  CHECK(score(exact, "a.c", {"abc"}, true) == 0.0);
  CHECK(score(exact, "", {""}) == 1.0);
}

TEST_CASE("includes finds the target anywhere; a blank target is no target", "[scorer]") {
  CHECK(score(includes, "The capital is Paris.", {"Paris"}) == 1.0);
  CHECK(score(includes, "The capital is paris.", {"Paris"}) == 0.0);
  CHECK(score(includes, "The capital is paris.", {"PARIS"}, true) == 1.0);
  CHECK(!score(includes, "anything", {" "}));
}

TEST_CASE("regex finds its pattern; a broken one is unscored and says why", "[scorer]") {
  CHECK(score(regex, "x = 42 km", {R"(\b42\b)"}) == 1.0);
  CHECK(score(regex, "x = 421", {R"(\b42\b)"}) == 0.0);
  CHECK(score(regex, "YES", {"^yes$"}, true) == 1.0);
  CHECK(!score(regex, "x", {"(unclosed"}));
  CHECK(score(regex, "x", {"(unclosed", "x"}) == 1.0);
  auto v = score_answer({regex, false, {}}, "x", {"(unclosed"});
  CHECK(v.note.find("is no RE2 pattern: missing )") != std::string::npos);
}

TEST_CASE("a pattern that ruins backtracking engines ends at once", "[scorer]") {
  auto began = std::chrono::steady_clock::now();
  CHECK(score(regex, std::string(100'000, 'a') + "!", {"^(a+)+$"}) == 0.0);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{5});
}

TEST_CASE("numbers are read as people write them", "[scorer]") {
  CHECK(number("42") == 42);
  CHECK(number("-3.5") == -3.5);
  CHECK(number("\xE2\x88\x92"
               "7")
        == -7);
  CHECK(number("$1,234,567.89") == 1234567.89);
  CHECK(number("-$5") == -5);
  CHECK(number("$-5") == -5);
  CHECK(number("\xE2\x82\xAC 12") == 12);
  CHECK(number("1_000") == 1000);
  CHECK(number("6.02e23 per mol") == 6.02e23);
  CHECK(number("1e-3") == 1e-3);
  CHECK(number("60 km/h") == 60);
  CHECK(number("5km") == 5);
  CHECK(number("3/4") == 0.75);
  CHECK(number("-1/2") == -0.5);
  CHECK(number("1 3/4 cups") == 1.75);
  CHECK(number(".5") == 0.5);
  CHECK(number("The answer is 42.") == 42);
  CHECK(number("\\boxed{17}") == 17);
  CHECK(number("#### 72") == 72);
  CHECK(read_number("12.5 %") == written_number{12.5, true});
}

TEST_CASE("of several numbers the last counts, and parts of words are none", "[scorer]") {
  CHECK(number("3 apples and 4 pears make 7") == 7);
  CHECK(number("10 - 3") == 3);
  CHECK(number("10-3") == 3);
  CHECK(number("1, 2, 3") == 3);
  CHECK(number("1,5") == 5);
  CHECK(number("12,345,6") == 6);
  CHECK(number("42 (see Q3)") == 42);
  CHECK(number("7 on 3/4/2024") == 7);
  CHECK(number("version 9 of H2O") == 9);
  CHECK(number("4 over 1/0") == 4);
  CHECK(std::isnan(number("no idea")));
  CHECK(std::isnan(number("nan")));
  CHECK(std::isnan(number("")));
  CHECK(std::isnan(number("1e999")));
}

TEST_CASE("numeric compares within its tolerance, near zero within the absolute one", "[scorer]") {
  CHECK(score(numeric, "3.1415927", {"3.14159265"}) == 1.0);
  CHECK(score(numeric, "3.1416", {"3.14159265"}) == 0.0);
  CHECK(score(numeric, "5.6e-17", {"0"}) == 1.0);
  CHECK(score(numeric, "1e-6", {"0"}) == 0.0);
  scorer_options loose{numeric, false, {0.01, 0}};
  CHECK(score_answer(loose, "3.15", {"3.14"}).score == 1.0);
  scorer_options absolute{numeric, false, {0, 0.5}};
  CHECK(score_answer(absolute, "10.4", {"10"}).score == 1.0);
  CHECK(score(numeric, "72", {"#### 72"}) == 1.0);
  CHECK(score(numeric, "7", {"five", "7"}) == 1.0);
  CHECK(score(numeric, "no idea", {"7"}) == 0.0);
  CHECK(!score(numeric, "7", {"five"}));
}

TEST_CASE("per cent on one side alone means the number or its hundredth", "[scorer]") {
  CHECK(score(numeric, "50%", {"50"}) == 1.0);
  CHECK(score(numeric, "50%", {"0.5"}) == 1.0);
  CHECK(score(numeric, "0.5", {"50%"}) == 1.0);
  CHECK(score(numeric, "50", {"0.5"}) == 0.0);
  CHECK(score(numeric, "0.5%", {"50%"}) == 0.0);
}

TEST_CASE("without an answer or a target there is no score", "[scorer]") {
  scorer_options o;
  CHECK(score_answer(o, std::nullopt, {"x"}) == verdict{std::nullopt, "no answer"});
  CHECK(score_answer(o, "x", {}) == verdict{std::nullopt, "no target"});
}

TEST_CASE("a limit without an answer is wrong, an error is unscored", "[scorer]") {
  scorer_options o{numeric, false, {}};
  CHECK(score_run(o, "max_steps", std::nullopt, {"7"})
        == verdict{0.0, "no answer before max_steps"});
  CHECK(!score_run(o, "max_steps", std::nullopt, {"no number"}).score);
  CHECK(!score_run(o, "max_steps", std::nullopt, {}).score);
  CHECK(score_run(o, "max_steps", "7", {"7"}).score == 1.0);
  CHECK(!score_run(o, "error", "7", {"7"}).score);
  CHECK(!score_run(o, "cancelled", std::nullopt, {"7"}).score);
  CHECK(score_run(o, "success", "8", {"7"}).score == 0.0);
}

TEST_CASE("a scorer reads a result: an empty text is an answer, nothing is none", "[scorer]") {
  auto judge = make_scorer({exact, false, {}});
  sample of;
  of.targets = {""};
  run_result r;
  r.end = "success";
  CHECK(judge(of, r).score == 0.0);
  CHECK(judge(of, r).note == "no answer before success");
  r.answer_value = "";
  CHECK(judge(of, r).score == 1.0);
}

TEST_CASE("an answer that is not UTF-8 is scored, and its note is", "[scorer]") {
  auto v = score_answer({regex, false, {}}, "a\xFF\x1B[31m", {"b"});
  CHECK(v.score == 0.0);
  CHECK(v.note.find('\x1B') == std::string::npos);
  CHECK(v.note.find("\xEF\xBF\xBD") != std::string::npos);
}

TEST_CASE("targets are checked before anything is spent", "[scorer]") {
  CHECK(check_targets({numeric, false, {}}, {"x", "5"}));
  CHECK(check_targets({numeric, false, {}}, {"x"}).error().detail
        == "numeric: the target 'x' has no number");
  CHECK(check_targets({exact, false, {}}, {}).error().detail == "no target");
  CHECK(scorer_from("regex") == scorer_kind::regex);
  CHECK(scorer_from("regexp").error().detail.find("did you mean 'regex'?") != std::string::npos);
}

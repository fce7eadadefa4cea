#include "runtime/model/enforce.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

model_reply reply_of(std::string text, std::size_t calls = 0) {
  model_reply r;
  r.text = std::move(text);
  r.finish_reason = "length";
  for (std::size_t i = 0; i < calls; ++i)
    r.tool_calls.push_back({"id" + std::to_string(i), "f", "{}"});
  return r;
}

/// What a filter shows of `text`, fed byte by byte, and what it shows before the end is known.
std::pair<std::string, std::string> filtered(std::string_view text,
                                             std::vector<std::string> stops) {
  stop_filter f{std::move(stops)};
  std::string early;
  for (auto c : text)
    early += f.feed(std::string_view{&c, 1});
  return {early + f.rest(), early};
}

}  // namespace

TEST_CASE("the text ends at the first stop sequence, as a server would have ended it",
          "[enforce]") {
  model_settings s{.stop = {"</code>", "Observation:", ""}};
  auto r = reply_of("a Observation: b</code>", 2);
  enforce(s, r);
  CHECK(r.text == "a ");
  CHECK(r.finish_reason == "stop");
  CHECK(r.tool_calls.empty());

  auto untouched = reply_of("a b", 2);
  enforce(s, untouched);
  CHECK(untouched == reply_of("a b", 2));
}

TEST_CASE("one call is left where parallel calls were forbidden", "[enforce]") {
  model_settings s;
  auto r = reply_of("", 3);
  enforce(s, r);
  CHECK(r.tool_calls.size() == 3);
  s.parallel_tool_calls = false;
  enforce(s, r);
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.tool_calls[0].id == "id0");
}

TEST_CASE("a filter shows what a cut at the whole text leaves", "[enforce]") {
  std::vector<std::string> stops{"</code>", "Obs:"};
  for (std::string text : {"", "plain", "a</code>b", "a</cod", "</code>", "x</c</code>", "Ob Obs:y",
                           "Obs</code>", "<</code>"}) {
    INFO(text);
    CHECK(filtered(text, stops).first == text.substr(0, find_stop(text, stops)));
  }
}

TEST_CASE("what may be the beginning of a stop sequence is held back, and no more", "[enforce]") {
  CHECK(filtered("ab</cod", {"</code>"}).second == "ab");
  CHECK(filtered("ab</codx", {"</code>"}).second == "ab</codx");
  CHECK(filtered("ab", {}).second == "ab");
  stop_filter f{{"aab"}};
  CHECK(f.feed("aaa") == "a");
  CHECK(f.feed("b!").empty());
  CHECK(f.stopped());
  CHECK(f.feed("more").empty());
  CHECK(f.rest().empty());
}

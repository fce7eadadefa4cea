#include "runtime/model/sse.hpp"
#include "runtime/model/surrogates.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

using events = std::vector<sse_event>;

events split(std::string_view bytes, std::size_t size, bool end = true) {
  sse_splitter s{1000};
  events out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size())))
    REQUIRE(s.feed(bytes.substr(0, size), out));
  if (end)
    REQUIRE(s.feed_end(out));
  return out;
}

/// The events, which must be the same wherever the bytes are cut.
events split(std::string_view bytes) {
  auto whole = split(bytes, bytes.size());
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    INFO("pieces of " << size);
    CHECK(split(bytes, size) == whole);
  }
  return whole;
}

}  // namespace

TEST_CASE("events end at a blank line, whatever ends a line", "[sse]") {
  events two{{"", "one"}, {"", "two"}};
  CHECK(split("data: one\n\ndata: two\n\n") == two);
  CHECK(split("data: one\r\n\r\ndata: two\r\n\r\n") == two);
  CHECK(split("data: one\r\rdata: two\r\r") == two);
  CHECK(split("data: one\r\n\ndata: two\n\r\n") == two);
}

// Source  HTML Living Standard, section 9.2.6: its examples.
TEST_CASE("the standard's examples are read as the standard says", "[sse]") {
  CHECK(split("data: YHOO\ndata: +2\ndata: 10\n\n") == events{{"", "YHOO\n+2\n10"}});
  CHECK(split(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
              "data:  third event\n\n")
        == events{{"", "first event"}, {"", "second event"}, {"", " third event"}});
  CHECK(split("data\n\ndata\ndata\n\n") == events{{"", ""}, {"", "\n"}});
  CHECK(split("data:test\n\ndata: test\n\n") == events{{"", "test"}, {"", "test"}});
}

TEST_CASE("a name belongs to its event alone, and one without data is none", "[sse]") {
  CHECK(split("event: a\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\n")
        == events{{"a", "1"}, {"", "2"}, {"", "3"}});
}

TEST_CASE("comments, unknown fields, retry and a byte order mark are read over", "[sse]") {
  CHECK(split("\xEF\xBB\xBF: OPENROUTER PROCESSING\nretry: 10\nx: y\ndata: {\"a\":\"b:c\"}\n\n")
        == events{{"", "{\"a\":\"b:c\"}"}});
  CHECK(split("data: a\n\n\xEF\xBB\xBF"
              "data: b\n\n")
        == events{{"", "a"}});
}

TEST_CASE("a UTF-8 sequence that is cut by the network comes whole", "[sse]") {
  CHECK(split("data: h\xC3\xA9 \xF0\x9F\x98\x80!\n\n") == events{{"", "hé 😀!"}});
}

TEST_CASE("the last event is read without its blank line, and without its newline", "[sse]") {
  CHECK(split("data: a\n\ndata: b\n") == events{{"", "a"}, {"", "b"}});
  CHECK(split("data: a\n\ndata: b") == events{{"", "a"}, {"", "b"}});
  CHECK(split("data: b\n", 100, false).empty());
}

TEST_CASE("a line or an event that is too long is an error before it takes memory", "[sse]") {
  sse_splitter line{100};
  events out;
  CHECK(line.feed(std::string(100, 'x'), out));
  auto too_long = line.feed("x", out);
  REQUIRE(!too_long);
  CHECK(too_long.error().code == errc::over_budget);

  sse_splitter event{100};
  std::string many;
  for (int i = 0; i < 20; ++i)
    many += "data: 123456789\n";
  CHECK(!event.feed(many, out));
  CHECK(out.empty());

  sse_splitter both{100};
  CHECK(both.feed("event: " + std::string(80, 'n') + "\n", out));
  CHECK(!both.feed("data: " + std::string(80, 'd') + "\n", out));
}

// -- surrogates ----------------------------------------------------------------------------------

TEST_CASE("a surrogate pair that was cut in two pieces of text is joined", "[surrogates]") {
  surrogate_joiner j;
  CHECK(j.mend(R"({"a":"x\ud83d"})") == R"({"a":"x"})");
  CHECK(j.mend(R"({"a":"\uDE00y"})") == R"({"a":"\ud83d\uDE00y"})");
  CHECK(j.mend(R"({"a":"z"})") == R"({"a":"z"})");
}

TEST_CASE("a half that has lost its other is the replacement character", "[surrogates]") {
  surrogate_joiner j;
  CHECK(j.mend(R"("\ude00")") == R"("\ufffd")");
  CHECK(j.mend(R"("\ud83dx")") == R"("\ufffdx")");
  CHECK(j.mend(R"("a\ude00")") == R"("a\ufffd")");
  CHECK(j.mend(R"("\ud83d\ud83d")") == R"("\ufffd")");
}

TEST_CASE("whole pairs, other escapes and escaped backslashes stay as they are", "[surrogates]") {
  surrogate_joiner j;
  for (auto* same : {R"("\ud83d\ude00")", R"("\u00e9\n\"")", R"("\\ud83d")", R"("\ud7ff")",
                     R"("\ud8)", R"(\)", ""})
    CHECK(j.mend(same) == same);
  CHECK(may_have_surrogates(R"("\ud83d")"));
  CHECK(!may_have_surrogates(R"("\u00e9 ud83d")"));
}

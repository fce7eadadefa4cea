// What is the same for every wire format: how an answer's bytes become one outcome.
#include "tests/model/codec_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::string_view hello = R"({"choices":[{"index":0,"delta":{"content":"Hello"}}]})";
constexpr std::string_view world = R"({"choices":[{"index":0,"delta":{"content":" world"}}]})";
constexpr std::string_view finish =
  R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";

model_failure reset() {
  return {failure_class::connect, "the connection broke", {}, 1};
}

}  // namespace

TEST_CASE("a stream is over at its last event, and not before", "[reply_stream]") {
  auto whole = stream(openai_codec(), events({hello, finish, "[DONE]"}), 5);
  CHECK(whole.complete);
  CHECK(whole.outcome->text == "Hello");
  CHECK(!stream(openai_codec(), events({hello, finish}), 5).complete);
}

TEST_CASE("a stream without [DONE] is whole once its finish reason came", "[reply_stream]") {
  CHECK(streamed_reply(openai_codec(), events({hello, world, finish})).text == "Hello world");
}

TEST_CASE("a stream that ends early is no reply", "[reply_stream]") {
  auto f = streamed_failure(openai_codec(), events({hello, world}));
  CHECK(f.kind == failure_class::bad_reply);
  has(f.detail, "ended before the reply did, after 2 events");
  // Cut within the last event: what is there of it is no JSON.
  auto bytes = events({hello, finish});
  has(streamed_failure(openai_codec(), bytes.substr(0, bytes.size() - 20)).detail, "not JSON");
}

TEST_CASE("a connection that breaks counts unless the reply was there", "[reply_stream]") {
  auto broken = stream(openai_codec(), events({hello}), 9, {}, reset());
  REQUIRE(!broken.outcome);
  CHECK(broken.outcome.error().kind == failure_class::connect);
  auto late = stream(openai_codec(), events({hello, finish}), 9, {}, reset());
  REQUIRE(late.outcome);
  CHECK(late.outcome->text == "Hello");
  auto never_began = stream(openai_codec(), "", 9, {}, reset());
  REQUIRE(!never_began.outcome);
  CHECK(never_began.outcome.error().kind == failure_class::connect);
}

TEST_CASE("an error in mid-stream is the outcome, of the class that its code names",
          "[reply_stream]") {
  auto f = streamed_failure(
    openai_codec(),
    events({hello, R"({"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}})",
            world, finish}));
  CHECK(f.kind == failure_class::rate_limited);
  has(f.detail, "broke off with an error: Rate limit reached (rate_limit_exceeded)");
  // OpenRouter: the code is a number, beside a choice that ends as "error".
  CHECK(
    streamed_failure(openai_codec(), events({hello, R"({"error":{"code":502,"message":"Upstream"},
    "choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]})"}))
      .kind
    == failure_class::server);
  // Gemini: an array.
  CHECK(streamed_failure(openai_codec(),
                         events({R"([{"error":{"code":429,"message":"Resource exhausted"}}])"}))
          .kind
        == failure_class::rate_limited);
  // An event by name, whose data is the error itself.
  f = streamed_failure(openai_codec(),
                       "event: error\ndata: {\"message\":\"boom\",\"type\":\"server_error\"}\n\n");
  CHECK(f.kind == failure_class::server);
  has(f.detail, "boom");
}

TEST_CASE("a server that does not stream although it was asked to is read all the same",
          "[reply_stream]") {
  constexpr std::string_view body = "\n {\"choices\":[{\"message\":{\"content\":\"Hi\"},"
                                    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}";
  CHECK(streamed_reply(openai_codec(), body) == decoded(openai_codec(), body));
  auto f = streamed_failure(openai_codec(), R"({"error":{"message":"no","code":"server_error"}})");
  CHECK(f.kind == failure_class::server);
  has(streamed_failure(openai_codec(), "<html><body>gateway").detail, "web page");
  has(streamed_failure(openai_codec(), "").detail, "no body");
  has(streamed_failure(openai_codec(), "{\"choices\":[{\"mess").detail, "cut short");
}

TEST_CASE("what is no stream of events at all is shown", "[reply_stream]") {
  auto f = streamed_failure(openai_codec(), "upstream connect error\nor disconnect\n");
  CHECK(f.kind == failure_class::bad_reply);
  has(f.detail, "upstream connect error or disconnect");
}

TEST_CASE("white space before the first byte that tells is a part of what follows",
          "[reply_stream]") {
  CHECK(streamed_reply(openai_codec(), "\n\r\n" + events({hello, finish})).text == "Hello");
  // A line that begins with a space is no field of the standard's.
  CHECK(streamed_failure(openai_codec(), " data: {}\n\n").kind == failure_class::bad_reply);
  CHECK(streamed_failure(openai_codec(), std::string(10'000, ' ')).kind
        == failure_class::bad_reply);
}

TEST_CASE("an event that is not a JSON object is a bad reply", "[reply_stream]") {
  has(streamed_failure(openai_codec(), events({hello, "{\"choices\":[{"})).detail, "not JSON");
  has(streamed_failure(openai_codec(), events({"12"})).detail, "not a JSON object");
  has(streamed_failure(openai_codec(), events({std::string(100'000, '[')})).detail,
      "nested deeper");
  has(streamed_failure(openai_codec(), events({""})).detail, "not JSON");
}

TEST_CASE("a stream that floods with one line ends as a bad reply", "[reply_stream]") {
  reply_stream s{openai_codec(), std::make_shared<model_settings>()};
  std::string megabyte(1u << 20, 'x');
  CHECK(s.feed("data: ").empty());
  for (int i = 0; i < 40 && !s.complete(); ++i)
    CHECK(s.feed(megabyte).empty());
  CHECK(s.complete());
  std::vector<model_delta> seen;
  auto outcome = s.finish({}, seen);
  REQUIRE(!outcome);
  has(outcome.error().detail, "longer than 33554432 bytes");
}

TEST_CASE("bytes that are not UTF-8 become replacement characters, not an end", "[reply_stream]") {
  auto r = streamed_reply(
    openai_codec(), events({"{\"choices\":[{\"delta\":{\"content\":\"a\xFF\xC3\"}}]}", finish}));
  CHECK(r.text == "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("a character that the server cut in half is whole again", "[reply_stream]") {
  auto r = streamed_reply(openai_codec(),
                          events({R"({"choices":[{"delta":{"content":"smile \ud83d"}}]})",
                                  R"({"choices":[{"delta":{"content":"\ude00!"}}]})", finish}));
  CHECK(r.text == "smile 😀!");
}

TEST_CASE("stop sequences are cut in streams too, and viewers never see them", "[reply_stream]") {
  auto bytes = events(
    {R"({"choices":[{"delta":{"content":"print(1)\n</co"}}]})",
     R"({"choices":[{"delta":{"content":"de>\nObservation: 2"}}]})",
     R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a",
                         "function":{"name":"f","arguments":"{}"}}]}}]})",
     finish, R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}})", "[DONE]"});
  model_settings s{.stop = {"</code>"}};
  auto r = streamed_reply(openai_codec(), bytes, s);
  CHECK(r.text == "print(1)\n");
  CHECK(r.finish_reason == "stop");
  CHECK(r.tool_calls.empty());
  CHECK(r.usage.output == 9);
  auto seen = stream(openai_codec(), bytes, 1, s);
  CHECK(seen.text() == "print(1)\n");
  for (auto& d : seen.seen)
    CHECK(d.what == model_delta::kind::text);
}

TEST_CASE("text arrives as it comes, not at the end", "[reply_stream]") {
  reply_stream s{openai_codec(), std::make_shared<model_settings>()};
  auto seen = s.feed(events({hello}));
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == model_delta{model_delta::kind::text, "Hello", 0, ""});
}

TEST_CASE("carriage returns, comments and a byte order mark do not disturb a stream",
          "[reply_stream]") {
  for (std::string_view newline : {"\r\n", "\r", "\n"}) {
    auto bytes = "\xEF\xBB\xBF: hello" + std::string{newline}
                 + events({hello, world, finish, "[DONE]"}, newline);
    CHECK(streamed_reply(openai_codec(), bytes).text == "Hello world");
  }
}

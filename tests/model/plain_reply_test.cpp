// The short way to a reply has to be the long one's twin.
#include "runtime/core/random.hpp"
#include "runtime/model/openai_chat.hpp"
#include "runtime/model/plain_reply.hpp"
#include "runtime/model/reply_reader.hpp"

#include <catch2/catch_test_macros.hpp>

#include <iterator>
#include <string>

using namespace troupe;

namespace {

model_outcome long_way(std::string_view body) {
  auto read = read_body(body);
  return read ? openai::read_reply(*read) : model_outcome{tl::unexpected(read.error())};
}

/// True when the short way took it; then it is what the long way makes of it.
bool taken_as_by_the_long_way(const std::string& body) {
  auto plain = openai::read_plain_reply(body);
  if (!plain)
    return false;
  CAPTURE(body);
  auto judged = long_way(body);
  REQUIRE(judged);
  CHECK(*plain == *judged);
  return true;
}

const std::string text_reply = R"({
  "id": "chatcmpl-B9", "object": "chat.completion", "created": 1741569952, "model": "gpt-4.1",
  "choices": [{"index": 0,
    "message": {"role": "assistant", "content": "Hello!\n\u00e9 \ud83d\ude00 )"
                               "\xC3\xA9"
                               R"(", "refusal": null, "annotations": [], "audio": null},
    "logprobs": {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": []}]},
    "finish_reason": "stop"}, {"message": {"content": "another", "x": 1}}],
  "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 6, "audio_tokens": 0}},
  "service_tier": "default", "error": null, "x": {"usage": {"prompt_tokens": 5}}})";

const std::string tool_reply = R"({"model":"m","choices":[{"message":{"role":"assistant",
  "content":null,"reasoning_content":null,"tool_calls":[
    {"id":"call_a","type":"function","index":0,"extra_content":null,
     "function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},
    {"type":"function","function":{"arguments":"","name":"get_time","more":[1]}},
    {"id":null,"function":{"name":"f"}}]},"finish_reason":"tool_calls"}],"usage":null})";

/// A reply with another message.
std::string with(const std::string& message) {
  return R"({"choices":[{"message":)" + message + "}]}";
}

}  // namespace

TEST_CASE("plain replies are read the short way, and to the same value", "[plain_reply]") {
  CHECK(taken_as_by_the_long_way(text_reply));
  CHECK(taken_as_by_the_long_way(tool_reply));
  for (auto* message :
       {R"({"content":"x"})", R"({"content":null})", "{}", R"({"content":"","refusal":"no"})",
        R"({"content":"x","refusal":"no"})", R"({"content":"x","tool_calls":[]})",
        R"({"content":"x","tool_calls":null})", R"({"content":"x","reasoning":"hm"})",
        R"({"content":"x","reasoning_content":"hm"})", R"({"content":"x","unknown":null})",
        R"({"content":"x","reasoning":null})", R"({"content":"x","audio":{"id":"a"}})"})
    CHECK(taken_as_by_the_long_way(with(message)));
  for (auto* usage : {"0", "-1", "1.5", "1e9", "1e10", "18446744073709551616", "1e308"})
    CHECK(taken_as_by_the_long_way(R"({"usage":{"prompt_tokens":)" + std::string{usage}
                                   + R"(},"choices":[{"message":{"content":"x"}}]})"));
}

TEST_CASE("what has to go back, and what is not plain, is left to the long way", "[plain_reply]") {
  for (auto* message :
       {R"({"content":["x"]})", R"({"content":"x","reasoning_details":[]})", "null", "5",
        R"({"content":"x","content":"y"})",
        R"({"content":"x","reasoning":"a","reasoning_content":""})",
        R"({"reasoning":"a","tool_calls":[{"function":{"name":"f"}}]})",
        R"({"tool_calls":[{"function":{"name":"f"},"extra_content":{"google":1}}]})",
        R"({"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]})",
        R"({"tool_calls":[{"function":{"name":""}}]})", R"({"tool_calls":[{"id":5}]})",
        R"({"tool_calls":[5]})", R"({"tool_calls":[{"function":{"name":"f"}},null]})",
        R"({"tool_calls":{}})"})
    CHECK(!openai::read_plain_reply(with(message)));
  for (auto* body :
       {"", "{}", "[]", "null", "x", R"({"choices":[]})", R"({"choices":[null,{"message":{}}]})",
        R"({"choices":[[{"message":{}}]]})", R"({"choices":{"message":{}}})",
        R"({"choices":[{"message":{}}],"error":"x"})", R"({"choices":[{"message":{},"error":{}}]})",
        R"([{"choices":[{"message":{}}]}])", R"({"choices":[{"message":{}}]}x)",
        R"({"choices":[{"message":{}}],"model":5})"})
    CHECK(!openai::read_plain_reply(body));
}

TEST_CASE("the short way says nothing else than the long one of spoilt replies", "[plain_reply]") {
  rng random{3};
  const std::string pieces[] = {"null", "\"\"", "{}",       "[]",   "5", "\"error\":1,",
                                ",",    "\"",   "}",        "]",    "{", "\"content\":\"y\",",
                                "\\",   "\xFF", "\"x\":1,", "true", " ", "\"reasoning\":\"r\","};
  std::size_t taken = 0;
  for (int i = 0; i < 40'000; ++i) {
    auto body = i % 2 == 0 ? text_reply : tool_reply;
    for (auto n = random.next() % 3; n > 0; --n) {
      auto at = random.next() % body.size();
      auto& piece = pieces[random.next() % std::size(pieces)];
      if (random.next() % 2 == 0)
        body.insert(at, piece);
      else
        body.replace(at, random.next() % 12, piece);
    }
    taken += taken_as_by_the_long_way(body) ? 1 : 0;
  }
  CHECK(taken > 10'000);
}

// Bodies in the shapes that the named servers send.
#include "runtime/model/codec.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

model_reply good(std::string_view body) {
  auto reply = openai_codec().decode(body);
  INFO((reply ? std::string{} : reply.error().detail));
  REQUIRE(reply);
  return *reply;
}

model_failure bad(std::string_view body) {
  auto reply = openai_codec().decode(body);
  REQUIRE(!reply);
  CHECK(reply.error().detail.find('\n') == std::string::npos);
  CHECK(reply.error().detail.size() < 600);
  return reply.error();
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

constexpr std::string_view openai_text = R"({
  "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion",
  "created": 1741569952, "model": "gpt-4.1-2025-04-14",
  "choices": [{"index": 0,
    "message": {"role": "assistant", "content": "Hello! \u00e9 \ud83d\ude00", "refusal": null,
                "annotations": []},
    "logprobs": null, "finish_reason": "stop"}],
  "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 6, "audio_tokens": 0,
      "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}},
  "service_tier": "default"})";

constexpr std::string_view openai_tools = R"({"model":"gpt-4.1","choices":[{"index":0,"message":{
  "role":"assistant","content":null,"tool_calls":[
    {"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},
    {"id":"call_b","type":"function","function":{"name":"get_time","arguments":""}}]},
  "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":82,"completion_tokens":17}})";

}  // namespace

TEST_CASE("a text reply gives text, end, model and usage", "[openai]") {
  auto r = good(openai_text);
  CHECK(r.text == "Hello! é 😀");
  CHECK(r.finish_reason == "stop");
  CHECK(r.model == "gpt-4.1-2025-04-14");
  CHECK(r.usage == token_usage{.input = 19, .output = 10, .cached = 4, .reasoning = 6});
  CHECK(r.tool_calls.empty());
}

TEST_CASE("bytes that are not UTF-8 become replacement characters in a whole reply too",
          "[openai]") {
  auto r =
    good("{\"choices\":[{\"message\":{\"content\":\"a\xFF\xC3\"},\"finish_reason\":\"stop\"}]}");
  CHECK(r.text == "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("a tool reply gives its calls as received", "[openai]") {
  auto r = good(openai_tools);
  CHECK(r.text.empty());
  CHECK(r.finish_reason == "tool_calls");
  REQUIRE(r.tool_calls.size() == 2);
  CHECK(r.tool_calls[0] == tool_call_message{"call_a", "get_weather", R"({"city":"Paris"})"});
  CHECK(r.tool_calls[1] == tool_call_message{"call_b", "get_time", "{}"});
}

TEST_CASE("arguments may be an object, and ids may be missing", "[openai]") {
  auto r = good(R"({"choices":[{"message":{"tool_calls":[
    {"function":{"name":"a","arguments":{"x":[1,2]}}},
    {"id":null,"function":{"name":"b","arguments":null}},
    {"id":"","function":{"name":"c"}}]}}]})");
  REQUIRE(r.tool_calls.size() == 3);
  CHECK(r.tool_calls[0] == tool_call_message{"call_0", "a", R"({"x":[1,2]})"});
  CHECK(r.tool_calls[1] == tool_call_message{"call_1", "b", "{}"});
  CHECK(r.tool_calls[2] == tool_call_message{"call_2", "c", "{}"});
}

TEST_CASE("content may be null, missing, or an array of parts", "[openai]") {
  CHECK(good(R"({"choices":[{"message":{"content":null}}]})").text.empty());
  CHECK(good(R"({"choices":[{"message":{"role":"assistant"}}]})").text.empty());
  CHECK(good(R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},
    {"type":"image_url","image_url":{}},"b",{"type":"text","text":"c"}]}}]})")
          .text
        == "abc");
  CHECK(good(R"({"choices":[{"message":{"content":42}}]})").text.empty());
}

TEST_CASE("a refusal is the reply's text when there is no other", "[openai]") {
  CHECK(good(R"({"choices":[{"message":{"content":null,"refusal":"I can't."}}]})").text
        == "I can't.");
}

TEST_CASE("usage may be missing, null, partial, or odd", "[openai]") {
  auto usage = [](std::string_view text) {
    return good(R"({"choices":[{"message":{"content":"x"}}])" + std::string{text} + "}").usage;
  };
  CHECK(usage("") == token_usage{});
  CHECK(usage(R"(,"usage":null)") == token_usage{});
  CHECK(usage(R"(,"usage":{"prompt_tokens":7})") == token_usage{.input = 7});
  CHECK(usage(R"(,"usage":{"prompt_tokens":7.0,"completion_tokens":-1,
    "prompt_tokens_details":null})")
        == token_usage{.input = 7});
  CHECK(usage(R"(,"usage":{"prompt_tokens":"7","completion_tokens":1e300})") == token_usage{});
  CHECK(usage(R"(,"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":3})")
        == token_usage{.output = 3});
}

TEST_CASE("finish_reason is the server's word, or empty", "[openai]") {
  auto reason = [](std::string_view text) {
    return good(R"({"choices":[{"message":{"content":"x"},"finish_reason":)" + std::string{text}
                + "}]}")
      .finish_reason;
  };
  CHECK(reason("\"length\"") == "length");
  CHECK(reason("\"eos\"") == "eos");
  CHECK(reason("null").empty());
}

TEST_CASE("what is not JSON is a bad reply that shows its first bytes", "[openai]") {
  auto f = bad("upstream\tconnect\nerror");
  CHECK(f.kind == failure_class::bad_reply);
  has(f.detail, "not JSON");
  has(f.detail, "upstream connect error");
  has(bad("<!DOCTYPE html>\n<html>").detail, "web page");
  has(bad("<!DOCTYPE html>\n<html>").detail, "base URL");
  has(bad("").detail, "no body");
  has(bad(" \n").detail, "no body");
  has(bad("data: {\"choices\":[]}\n\n").detail, "stream of events");
  has(bad(openai_text.substr(0, 300)).detail, "cut short after 300 bytes");
  has(bad(std::string(3000, '\xff')).detail, "not JSON");
}

TEST_CASE("JSON of another shape is a bad reply that says what is missing", "[openai]") {
  has(bad("[]").detail, "not a JSON object");
  has(bad("null").detail, "not a JSON object");
  has(bad("{}").detail, "no choices");
  has(bad(R"({"choices":[]})").detail, "no choices");
  has(bad(R"({"choices":{}})").detail, "no choices");
  has(bad(R"({"choices":[1]})").detail, "no message");
  has(bad(R"({"choices":[{"message":null}]})").detail, "no message");
  has(bad(R"({"choices":[{"message":{"tool_calls":{}}}]})").detail, "tool_calls is not an array");
  has(bad(R"({"choices":[{"message":{"tool_calls":[{"id":"x"}]}}]})").detail, "names no function");
  CHECK(bad("{}").kind == failure_class::bad_reply);
}

TEST_CASE("hostile nesting is a bad reply, not a crash", "[openai]") {
  std::string deep = "{\"choices\":" + std::string(100'000, '[');
  has(bad(deep).detail, "nested deeper");
}

TEST_CASE("an error inside a 200 keeps its own class where it tells one", "[openai]") {
  // OpenRouter
  auto f = bad(R"({"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min."}})");
  CHECK(f.kind == failure_class::rate_limited);
  has(f.detail, "answered 200 with an error: Rate limit exceeded");
  f = bad(R"({"error":{"message":"No allowed providers","code":404}})");
  CHECK(f.kind == failure_class::bad_request);
  f = bad(R"({"error":{"message":"exceeded your quota","code":"insufficient_quota"}})");
  CHECK(f.kind == failure_class::quota);
  f = bad(R"({"choices":[{"error":{"code":502,"message":"Upstream"},"message":{"content":""}}]})");
  CHECK(f.kind == failure_class::server);
  CHECK(bad(R"({"error":"model is loading"})").kind == failure_class::bad_reply);
  CHECK(bad(R"({"error":{"type":"weird"}})").kind == failure_class::bad_reply);
  CHECK(good(R"({"error":null,"choices":[{"message":{"content":"x"}}]})").text == "x");
}

TEST_CASE("vLLM: calls count whatever the finish reason is", "[openai]") {
  auto r = good(R"({"choices":[{"message":{"role":"assistant","content":"","reasoning":"hm",
    "reasoning_content":null,"tool_calls":[{"id":"chatcmpl-tool-1","type":"function",
    "function":{"name":"f","arguments":"{\"x\": 1}"}}]},"finish_reason":"stop"}]})");
  CHECK(r.finish_reason == "stop");
  CHECK(r.reasoning == "hm");
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.tool_calls[0] == tool_call_message{"chatcmpl-tool-1", "f", R"({"x": 1})"});
}

TEST_CASE("Gemini: an error inside a 200 may stand in an array", "[openai]") {
  CHECK(
    bad(R"([{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}])")
      .kind
    == failure_class::rate_limited);
  has(bad("[[[]]]").detail, "not a JSON object");
}

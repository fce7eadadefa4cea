// Chat completions in pieces, in the shapes that the named servers send.
#include "tests/model/codec_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A delta of choice 0.
std::string delta(std::string_view members, std::string_view reason = "null") {
  return R"({"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":)"
         + std::string{members} + R"(,"finish_reason":)" + std::string{reason} + "}]}";
}

std::string call_piece(std::string_view piece) {
  return delta("{\"tool_calls\":[" + std::string{piece} + "]}");
}

const std::string ends = delta("{}", "\"tool_calls\"");

std::vector<tool_call_message> calls_of(std::initializer_list<std::string_view> pieces) {
  std::string bytes;
  for (auto p : pieces)
    bytes += events({call_piece(p)});
  return streamed_reply(openai_codec(), bytes + events({ends, "[DONE]"})).tool_calls;
}

// As api.openai.com sends it, shortened.
constexpr std::string_view openai_stream =
  R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-2025-04-14","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"content":"Bonjour, ça"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"content":" va 😀?"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4.1-2025-04-14","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}}

data: [DONE]

)";

constexpr std::string_view openai_whole = R"({"id":"chatcmpl-1","model":"gpt-4.1-2025-04-14",
  "choices":[{"index":0,"message":{"role":"assistant","content":"Bonjour, ça va 😀?","refusal":null},
    "finish_reason":"stop"}],
  "usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,
    "prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}})";

}  // namespace

TEST_CASE("OpenAI: a streamed reply is the value of the same reply in one piece", "[chat_stream]") {
  CHECK(streamed_reply(openai_codec(), openai_stream) == decoded(openai_codec(), openai_whole));
}

TEST_CASE("OpenAI: parallel calls grow by their index, in any order", "[chat_stream]") {
  auto calls = calls_of(
    {R"({"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}})",
     R"({"index":0,"function":{"arguments":"{\"city\":"}})",
     R"({"index":1,"id":"call_b","type":"function","function":{"name":"get_time","arguments":""}})",
     R"({"index":1,"function":{"arguments":"{}"}})",
     R"({"index":0,"function":{"arguments":"\"Paris\"}"}})"});
  REQUIRE(calls.size() == 2);
  CHECK(calls[0] == tool_call_message{"call_a", "get_weather", R"({"city":"Paris"})"});
  CHECK(calls[1] == tool_call_message{"call_b", "get_time", "{}"});
}

TEST_CASE("viewers get a call's name once and its arguments in pieces", "[chat_stream]") {
  auto bytes =
    events({call_piece(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}})"),
            call_piece(R"({"index":0,"function":{"arguments":":1}"}})"), ends});
  auto seen = stream(openai_codec(), bytes, 1).seen;
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == model_delta{model_delta::kind::tool_call, "{\"x\"", 0, "f"});
  CHECK(seen[1] == model_delta{model_delta::kind::tool_call, ":1}", 0, ""});
}

TEST_CASE("Gemini: calls without an index are told apart by their ids", "[chat_stream]") {
  auto calls = calls_of(
    {R"({"id":"function-call-1","type":"function","function":{"name":"a","arguments":"{\"x\":1}"},
      "extra_content":{"google":{"thought_signature":"CsQB"}}})",
     R"({"id":"function-call-2","type":"function","function":{"name":"a","arguments":"{\"x\":2}"}})"});
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].arguments == "{\"x\":1}");
  CHECK(calls[0].kept == R"({"extra_content":{"google":{"thought_signature":"CsQB"}}})");
  CHECK(calls[1].arguments == "{\"x\":2}");
  CHECK(calls[1].kept.empty());
}

TEST_CASE("Gemini: the finish reason of a streamed call may be stop", "[chat_stream]") {
  auto bytes = events({call_piece(R"({"id":"x","function":{"name":"a","arguments":"{}"}})"),
                       delta("{}", "\"stop\""), "[DONE]"});
  auto r = streamed_reply(openai_codec(), bytes);
  CHECK(r.finish_reason == "stop");
  CHECK(r.tool_calls.size() == 1);
}

TEST_CASE("without index and id a named piece begins a call, another goes on with the last",
          "[chat_stream]") {
  auto calls = calls_of({R"({"function":{"name":"a","arguments":"{\"x\""}})",
                         R"({"function":{"arguments":":1}"}})",
                         R"({"function":{"name":"b","arguments":"{}"}})"});
  REQUIRE(calls.size() == 2);
  CHECK(calls[0] == tool_call_message{"call_0", "a", "{\"x\":1}"});
  CHECK(calls[1] == tool_call_message{"call_1", "b", "{}"});
}

TEST_CASE("Ollama: another id on the same index is another call", "[chat_stream]") {
  auto calls =
    calls_of({R"({"index":0,"id":"call_1","function":{"name":"a","arguments":"{\"x\":1}"}})",
              R"({"index":0,"id":"call_2","function":{"name":"a","arguments":"{\"x\":"}})",
              R"({"index":0,"function":{"arguments":"2}"}})"});
  REQUIRE(calls.size() == 2);
  CHECK(calls[0] == tool_call_message{"call_1", "a", "{\"x\":1}"});
  CHECK(calls[1] == tool_call_message{"call_2", "a", "{\"x\":2}"});
}

TEST_CASE("an id and a name that are repeated in every piece are one call's", "[chat_stream]") {
  auto calls = calls_of({R"({"index":0,"id":"i","function":{"name":"add","arguments":"{\"a\""}})",
                         R"({"index":0,"id":"i","function":{"name":"add","arguments":":1}"}})"});
  REQUIRE(calls.size() == 1);
  CHECK(calls[0] == tool_call_message{"i", "add", "{\"a\":1}"});
}

TEST_CASE("arguments may be an object, or never come", "[chat_stream]") {
  auto calls = calls_of({R"({"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1]}}})",
                         R"({"index":1,"id":"b","function":{"name":"g"}})",
                         R"({"index":2,"id":"c","function":{"name":"h","arguments":null}})"});
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].arguments == R"({"x":[1]})");
  CHECK(calls[1].arguments == "{}");
  CHECK(calls[2].arguments == "{}");
}

TEST_CASE("llama.cpp: arguments come one character at a time", "[chat_stream]") {
  auto bytes =
    events({call_piece(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})")});
  for (auto* c : {"\\\"", "x", "\\\"", ":", "1", "}"})
    bytes +=
      events({call_piece(R"({"index":0,"function":{"arguments":")" + std::string{c} + "\"}}")});
  auto r = streamed_reply(openai_codec(), bytes + events({ends, "[DONE]"}));
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.tool_calls[0].arguments == "{\"x\":1}");
}

TEST_CASE("llama.cpp: a call that was cut by the length keeps what it has, and must not run",
          "[chat_stream]") {
  auto bytes =
    events({call_piece(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})"),
            delta("{}", "\"length\""), "[DONE]"});
  auto r = streamed_reply(openai_codec(), bytes);
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.finish_reason == "length");
  auto arguments = arguments_of(r.tool_calls[0]);
  REQUIRE(!arguments);
  CHECK(arguments.error().code == errc::corrupt);
  CHECK(!arguments_of({"", "f", "[1]"}));
  CHECK(*arguments_of({"", "f", " "}) == json::object());
  CHECK((*arguments_of({"", "f", R"({"x":1})"}))["x"] == 1);
}

TEST_CASE("vLLM: reasoning comes as reasoning_content or as reasoning", "[chat_stream]") {
  for (std::string name : {"reasoning_content", "reasoning"}) {
    auto bytes =
      events({delta("{\"" + name + "\":\"Let me \"}"), delta("{\"" + name + "\":\"see\"}"),
              delta("{\"content\":\"42\"}"), delta("{}", "\"stop\""), "[DONE]"});
    auto r = streamed_reply(openai_codec(), bytes);
    CHECK(r.reasoning == "Let me see");
    CHECK(r.text == "42");
    CHECK(r.kept.empty());
    CHECK(stream(openai_codec(), bytes, 3).text(model_delta::kind::reasoning) == "Let me see");
  }
}

TEST_CASE("vLLM: usage may come with every event, and the last one counts", "[chat_stream]") {
  auto with_usage = [](int n) {
    return R"({"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}],
      "usage":{"prompt_tokens":5,"completion_tokens":)"
           + std::to_string(n) + "}}";
  };
  std::string one = with_usage(1), two = with_usage(2);
  auto r = streamed_reply(openai_codec(), events({one, two, delta("{}", "\"stop\"")}));
  CHECK(r.usage == token_usage{.input = 5, .output = 2});
}

TEST_CASE("OpenRouter: reasoning details are put together by index, and kept", "[chat_stream]") {
  auto bytes = events(
    {delta(
       R"({"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"x"}]})"),
     delta(
       R"({"reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"format":"x"}]})"),
     delta(R"({"reasoning_details":[{"type":"reasoning.encrypted","data":"ZZ","index":1}]})"),
     delta(R"({"content":"ok"})", "\"stop\""), "[DONE]"});
  auto plain = decoded(openai_codec(), R"({"model":"m","choices":[{"message":{"content":"ok",
    "reasoning":"ab","reasoning_details":[
      {"type":"reasoning.text","text":"ab","index":0,"format":"x"},
      {"type":"reasoning.encrypted","data":"ZZ","index":1}]},"finish_reason":"stop"}]})");
  CHECK(streamed_reply(openai_codec(), bytes) == plain);
  CHECK(json::parse(plain.kept)["reasoning_details"].size() == 2);
}

TEST_CASE("a refusal, parts as content, and other choices are understood", "[chat_stream]") {
  CHECK(streamed_reply(openai_codec(), events({delta(R"({"refusal":"I ca"})"),
                                               delta(R"({"refusal":"n't."})", "\"stop\"")}))
          .text
        == "I can't.");
  CHECK(streamed_reply(openai_codec(),
                       events({delta(R"({"content":[{"type":"text","text":"a"}]})"),
                               R"({"choices":[{"index":1,"delta":{"content":"other"}}]})",
                               delta(R"({"content":"b"})", "\"stop\"")}))
          .text
        == "ab");
}

TEST_CASE("a short reply may come as a message in one event", "[chat_stream]") {
  auto r = streamed_reply(openai_codec(), events({R"({"choices":[{"index":0,
    "message":{"role":"assistant","content":"all"},"finish_reason":"stop"}]})",
                                                  "[DONE]"}));
  CHECK(r.text == "all");
}

TEST_CASE("[DONE] alone ends a reply of a server without finish reasons", "[chat_stream]") {
  CHECK(streamed_reply(openai_codec(), events({delta(R"({"content":"x"})"), "[DONE]"})).text
        == "x");
  CHECK(streamed_failure(openai_codec(), events({"[DONE]"})).kind == failure_class::bad_reply);
}

TEST_CASE("pieces of calls that make no sense are bad replies", "[chat_stream]") {
  has(streamed_failure(openai_codec(), events({call_piece("1"), ends})).detail, "not an object");
  has(
    streamed_failure(openai_codec(), events({call_piece(R"({"index":0,"id":"x"})"), ends})).detail,
    "names no function");
  std::string many;
  for (int i = 0; i < 2000; ++i)
    many +=
      events({call_piece(R"({"index":)" + std::to_string(i) + R"(,"function":{"name":"f"}})")});
  auto f = stream(openai_codec(), many, 4096);
  REQUIRE(!f.outcome);
  has(f.outcome.error().detail, "more than 1024 tool calls");
}

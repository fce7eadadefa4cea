// Anthropic's Messages: requests, replies, and streams as api.anthropic.com and llama.cpp send
// them.
#include "tests/model/codec_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const codec& anthropic() {
  static const auto instance = make_codec({.wire = wire_format::anthropic});
  return *instance;
}

json messages_of(const std::vector<chat_message>& messages) {
  return body_of(anthropic(), {.model = "claude"}, messages)["messages"];
}

chat_message user(std::string text) {
  return {.from = role::user, .content = std::move(text)};
}

chat_message result_of(std::string id, std::string text, bool failed = false) {
  return {.from = role::tool,
          .content = std::move(text),
          .tool_call_id = std::move(id),
          .failed = failed};
}

/// A reply as the loop puts it back into the conversation.
chat_message as_message(const model_reply& r) {
  return {.from = role::assistant, .content = r.text, .tool_calls = r.tool_calls, .kept = r.kept};
}

std::string named(std::string_view name, std::string_view data) {
  return "event: " + std::string{name} + "\n" + events({data});
}

constexpr std::string_view whole_reply = R"({"id":"msg_1","type":"message","role":"assistant",
  "model":"claude-sonnet-4-5","content":[
    {"type":"thinking","thinking":"Let me see.","signature":"EqQB"},
    {"type":"text","text":"I'll ask."},
    {"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Paris"}},
    {"type":"tool_use","id":"toolu_2","name":"now","input":{}}],
  "stop_reason":"tool_use","stop_sequence":null,
  "usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,
           "output_tokens":89}})";

const std::string streamed_tools =
  named("message_start", R"({"type":"message_start","message":{"id":"msg_1","type":"message",
    "role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,
    "stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":200,
    "cache_read_input_tokens":3000,"output_tokens":1}}})")
  + named("content_block_start", R"({"type":"content_block_start","index":0,
    "content_block":{"type":"thinking","thinking":"","signature":""}})")
  + named("ping", R"({"type":"ping"})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":0,
    "delta":{"type":"thinking_delta","thinking":"Let me"}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":0,
    "delta":{"type":"thinking_delta","thinking":" see."}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":0,
    "delta":{"type":"signature_delta","signature":"EqQB"}})")
  + named("content_block_stop", R"({"type":"content_block_stop","index":0})")
  + named("content_block_start", R"({"type":"content_block_start","index":1,
    "content_block":{"type":"text","text":""}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":1,
    "delta":{"type":"text_delta","text":"I'll ask."}})")
  + named("content_block_stop", R"({"type":"content_block_stop","index":1})")
  + named("content_block_start", R"({"type":"content_block_start","index":2,
    "content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":2,
    "delta":{"type":"input_json_delta","partial_json":""}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":2,
    "delta":{"type":"input_json_delta","partial_json":"{\"city\":"}})")
  + named("content_block_delta", R"({"type":"content_block_delta","index":2,
    "delta":{"type":"input_json_delta","partial_json":" \"Paris\"}"}})")
  + named("content_block_stop", R"({"type":"content_block_stop","index":2})")
  + named("content_block_start", R"({"type":"content_block_start","index":3,
    "content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}})")
  + named("content_block_stop", R"({"type":"content_block_stop","index":3})")
  + named("message_delta", R"({"type":"message_delta","delta":{"stop_reason":"tool_use",
    "stop_sequence":null},"usage":{"output_tokens":89}})")
  + named("message_stop", R"({"type":"message_stop"})");

std::string text_stream(std::string_view end) {
  return named("message_start", R"({"type":"message_start","message":{"model":"m","content":[],
    "usage":{"input_tokens":1}}})")
         + named("content_block_start", R"({"type":"content_block_start","index":0,
    "content_block":{"type":"text","text":""}})")
         + named("content_block_delta", R"({"type":"content_block_delta","index":0,
    "delta":{"type":"text_delta","text":"Hi"}})")
         + std::string{end};
}

}  // namespace

// -- requests ------------------------------------------------------------------------------------

TEST_CASE("the system prompt stands at the top level, and max_tokens is always sent",
          "[anthropic]") {
  auto body = body_of(anthropic(), {.model = "claude"},
                      {{.from = role::system, .content = "Be brief."}, user("hi")});
  CHECK(body == json::parse(R"({"model":"claude","max_tokens":8192,
    "system":[{"type":"text","text":"Be brief."}],
    "messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]})"));
  auto e = encoded(anthropic(), {.model = "claude"}, {});
  CHECK(e.target == "/messages");
}

TEST_CASE("cache marks stand on the last tool, the first system block and the request as a whole",
          "[anthropic]") {
  auto marked = make_codec({.wire = wire_format::anthropic, .prompt_cache = true});
  auto mark = json::parse(R"({"type":"ephemeral"})");
  model_settings s{.model = "claude"};
  for (const char* name : {"a", "b"}) {
    tool_spec tool;
    tool.name = name;
    tool.parameters = ordered_json::parse(R"({"type":"object"})");
    s.tools.push_back(tool);
  }
  std::vector<chat_message> messages{{.from = role::system, .content = "Be brief."},
                                     {.from = role::system, .content = "Be kind."},
                                     user("hi")};
  auto body = body_of(*marked, s, messages);
  CHECK(body["cache_control"] == mark);
  CHECK_FALSE(body["tools"][0].contains("cache_control"));
  CHECK(body["tools"][1]["cache_control"] == mark);
  CHECK(body["system"][0]["cache_control"] == mark);
  CHECK_FALSE(body["system"][1].contains("cache_control"));
  CHECK_FALSE(body["messages"][0]["content"][0].contains("cache_control"));

  s.extra_body = {{"cache_control", nullptr}};
  CHECK_FALSE(body_of(*marked, s, messages).contains("cache_control"));
  CHECK(body_of(*marked, {.model = "claude"}, {})["messages"] == json::array());
}

TEST_CASE("a conversation without messages, without a system prompt, or with only that is JSON",
          "[anthropic]") {
  CHECK(messages_of({}) == json::array());
  CHECK(messages_of({user("a")}).size() == 1);
  auto only =
    body_of(anthropic(), {.model = "c"},
            {{.from = role::system, .content = "s"}, {.from = role::system, .content = "t"}});
  CHECK(only["messages"] == json::array());
  CHECK(only["system"].size() == 2);
}

TEST_CASE("all results of a turn stand together and first in the next user message",
          "[anthropic]") {
  chat_message calls{.from = role::assistant,
                     .content = "Asking.",
                     .tool_calls = {{"t1", "a", R"({"x": 1})"}, {"t2", "b", ""}}};
  auto m = messages_of({user("go"),
                        calls,
                        result_of("t1", "one"),
                        result_of("t2", "no such thing", true),
                        user("and now?"),
                        {.from = role::assistant, .content = "Done."}});
  REQUIRE(m.size() == 4);
  CHECK(m[1] == json::parse(R"({"role":"assistant","content":[{"type":"text","text":"Asking."},
    {"type":"tool_use","id":"t1","name":"a","input":{"x":1}},
    {"type":"tool_use","id":"t2","name":"b","input":{}}]})"));
  CHECK(m[2] == json::parse(R"({"role":"user","content":[
    {"type":"tool_result","tool_use_id":"t1","content":"one"},
    {"type":"tool_result","tool_use_id":"t2","content":"no such thing","is_error":true},
    {"type":"text","text":"and now?"}]})"));
  CHECK(m[3]["role"] == "assistant");
}

TEST_CASE("messages that follow each other in one role are one message", "[anthropic]") {
  auto m = messages_of({user("a"), user("b"), {.from = role::system, .content = "late"}});
  REQUIRE(m.size() == 1);
  CHECK(m[0]["content"].size() == 3);
  CHECK(m[0]["content"][2]["text"] == "late");
}

TEST_CASE("blank texts, which are refused, and cut arguments are not sent", "[anthropic]") {
  auto m =
    messages_of({user(" \n"), {.from = role::assistant, .tool_calls = {{"t", "a", "{\"x\":"}}}});
  CHECK(m[0]["content"][0]["text"] == "(empty)");
  REQUIRE(m[1]["content"].size() == 1);
  CHECK(m[1]["content"][0]["input"] == json::object());
}

TEST_CASE("images are sent as data or as a URL", "[anthropic]") {
  chat_message m = user("look");
  m.images = {"data:image/png;base64,iVBORw0=", "https://example.org/a.png"};
  auto blocks = messages_of({m})[0]["content"];
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[1]["source"]
        == json::parse(R"({"type":"base64","media_type":"image/png","data":"iVBORw0="})"));
  CHECK(blocks[2]["source"] == json::parse(R"({"type":"url","url":"https://example.org/a.png"})"));
}

TEST_CASE("settings have Anthropic's names", "[anthropic]") {
  model_settings s{.model = "claude",
                   .temperature = 0.5,
                   .max_output_tokens = 100,
                   .seed = 7,
                   .stop = {"</code>", "\n"}};
  s.tools.emplace_back();
  s.tools[0].name = "add";
  s.tools[0].description = "Adds.";
  s.tools[0].parameters = ordered_json::parse(R"({"type":"object"})");
  s.choice = {tool_choice::mode::named, "add"};
  s.parallel_tool_calls = false;
  s.output.emplace().schema = ordered_json::parse(R"({"type":"object"})");
  s.reasoning_effort = "high";
  s.extra_body = json::parse(R"({"thinking":{"type":"adaptive"},"system":"no","stream":true})");
  auto body = body_of(anthropic(), s, {user("x")});
  CHECK(body["max_tokens"] == 100);
  CHECK(body["temperature"] == 0.5);
  CHECK(!body.contains("seed"));
  CHECK(body["stop_sequences"] == json::array({"</code>"}));
  CHECK(
    body["tools"]
    == json::parse(R"([{"name":"add","description":"Adds.","input_schema":{"type":"object"}}])"));
  CHECK(body["tool_choice"]
        == json::parse(R"({"type":"tool","name":"add","disable_parallel_tool_use":true})"));
  CHECK(body["output_config"] == json::parse(R"({"effort":"high",
    "format":{"type":"json_schema","schema":{"type":"object"}}})"));
  CHECK(body["thinking"]["type"] == "adaptive");
  CHECK(!body.contains("system"));
  CHECK(!body.contains("stream"));
  CHECK(body_of(anthropic(), s, {user("x")}, delivery::streamed)["stream"] == true);
}

TEST_CASE("tool choice has Anthropic's words", "[anthropic]") {
  using enum tool_choice::mode;
  auto choice = [](tool_choice::mode how, std::optional<bool> parallel = {}) {
    model_settings s{.model = "c", .choice = {how, ""}, .parallel_tool_calls = parallel};
    s.tools.emplace_back();
    auto body = body_of(anthropic(), s, {user("x")});
    return body.contains("tool_choice") ? body["tool_choice"].dump() : "";
  };
  CHECK(choice(automatic).empty());
  CHECK(choice(automatic, false) == R"({"disable_parallel_tool_use":true,"type":"auto"})");
  CHECK(choice(required) == R"({"type":"any"})");
  CHECK(choice(none, false) == R"({"type":"none"})");
}

TEST_CASE("the version is a header, and the newer one has no samplers", "[anthropic]") {
  CHECK(anthropic().headers("k\n")
        == header_list{{"anthropic-version", "2023-06-01"}, {"x-api-key", "k"}});
  auto newer = make_codec({.wire = wire_format::anthropic, .version = "2026-10-21"});
  CHECK(newer->headers("") == header_list{{"anthropic-version", "2026-10-21"}});
  CHECK(!body_of(*newer, {.model = "c", .temperature = 1.0}, {user("x")}).contains("temperature"));
  CHECK(
    body_of(anthropic(), {.model = "c", .temperature = 1.0}, {user("x")}).contains("temperature"));
}

// -- replies -------------------------------------------------------------------------------------

TEST_CASE("a reply gives text, thinking, calls and what went through the cache", "[anthropic]") {
  auto r = decoded(anthropic(), whole_reply);
  CHECK(r.text == "I'll ask.");
  CHECK(r.reasoning == "Let me see.");
  REQUIRE(r.tool_calls.size() == 2);
  CHECK(r.tool_calls[0] == tool_call_message{"toolu_1", "get_weather", R"({"city":"Paris"})"});
  CHECK(r.tool_calls[1] == tool_call_message{"toolu_2", "now", "{}"});
  CHECK(r.finish_reason == "tool_calls");
  CHECK(r.model == "claude-sonnet-4-5");
  CHECK(r.usage == token_usage{.input = 3210, .output = 89, .cached = 3000, .cache_written = 200});
}

TEST_CASE("ends have the words of chat completions", "[anthropic]") {
  auto reason = [](std::string_view word) {
    return decoded(anthropic(), R"({"content":[],"stop_reason":")" + std::string{word} + "\"}")
      .finish_reason;
  };
  CHECK(reason("end_turn") == "stop");
  CHECK(reason("stop_sequence") == "stop");
  CHECK(reason("max_tokens") == "length");
  CHECK(reason("model_context_window_exceeded") == "length");
  CHECK(reason("refusal") == "content_filter");
  CHECK(reason("pause_turn") == "pause_turn");
}

TEST_CASE("thinking goes back unchanged and in its place", "[anthropic]") {
  auto r = decoded(anthropic(), whole_reply);
  auto m = messages_of({user("x"), as_message(r)});
  CHECK(m[1]["content"] == json::parse(whole_reply)["content"]);
}

TEST_CASE("with a reply that was edited the thinking still goes back, and first", "[anthropic]") {
  auto edited = as_message(decoded(anthropic(), R"({"content":[
    {"type":"redacted_thinking","data":"EmwK"},{"type":"text","text":"a"},
    {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
    {"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"})"));
  edited.content = "b";
  auto blocks = messages_of({user("x"), edited})[1]["content"];
  CHECK(blocks == json::parse(R"([{"type":"redacted_thinking","data":"EmwK"},
    {"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"f","input":{}}])"));
}

TEST_CASE("a reply of text and calls alone keeps nothing", "[anthropic]") {
  CHECK(decoded(anthropic(), R"({"content":[{"type":"text","text":"a"},
    {"type":"tool_use","id":"t","name":"f","input":{}}]})")
          .kept.empty());
}

TEST_CASE("errors are read in their own shape, and bodies of another are bad replies",
          "[anthropic]") {
  auto f = anthropic().classify(529, {}, R"({"type":"error","error":{"type":"overloaded_error",
    "message":"Overloaded"},"request_id":"req_1"})");
  CHECK(f.kind == failure_class::overloaded);
  has(f.detail, "HTTP 529: Overloaded (overloaded_error)");
  auto inside = anthropic().decode(
    R"({"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}})");
  REQUIRE(!inside);
  CHECK(inside.error().kind == failure_class::rate_limited);
  has(anthropic().decode("{}").error().detail, "no content");
  has(anthropic().decode(R"({"content":[{"type":"tool_use","id":"x"}]})").error().detail,
      "names no tool");
  has(anthropic().decode("<html>").error().detail, "web page");
  CHECK(decoded(anthropic(), R"({"content":[1,null,"x"],"usage":[]})").text.empty());
}

// -- streams -------------------------------------------------------------------------------------

TEST_CASE("a streamed message is the value of the same message in one piece", "[anthropic]") {
  CHECK(streamed_reply(anthropic(), streamed_tools) == decoded(anthropic(), whole_reply));
  auto s = stream(anthropic(), streamed_tools, 10);
  CHECK(s.complete);
  CHECK(s.text(model_delta::kind::reasoning) == "Let me see.");
  CHECK(s.text(model_delta::kind::tool_call) == R"({"city": "Paris"})");
}

TEST_CASE("llama.cpp: a call's start without input, and all blocks ended together", "[anthropic]") {
  auto bytes =
    named("message_start", R"({"type":"message_start","message":{"model":"m","content":[]}})")
    + named("content_block_start", R"({"type":"content_block_start","index":0,
      "content_block":{"type":"tool_use","id":"a","name":"f"}})")
    + named("content_block_delta", R"({"type":"content_block_delta","index":0,
      "delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}})")
    + named("content_block_start", R"({"type":"content_block_start","index":1,
      "content_block":{"type":"tool_use","id":"b","name":"g"}})")
    + named("content_block_stop", R"({"type":"content_block_stop","index":0})")
    + named("content_block_stop", R"({"type":"content_block_stop","index":1})")
    + named("message_delta", R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},
      "usage":{"output_tokens":4}})")
    + named("message_stop", R"({"type":"message_stop"})");
  auto r = streamed_reply(anthropic(), bytes);
  REQUIRE(r.tool_calls.size() == 2);
  CHECK(r.tool_calls[0] == tool_call_message{"a", "f", "{\"x\":1}"});
  CHECK(r.tool_calls[1] == tool_call_message{"b", "g", "{}"});
  CHECK(r.usage.output == 4);
}

TEST_CASE("a call whose input was cut by the length stays cut, and must not run", "[anthropic]") {
  auto bytes = named("content_block_start", R"({"type":"content_block_start","index":0,
    "content_block":{"type":"tool_use","id":"a","name":"f","input":{}}})")
               + named("content_block_delta", R"({"type":"content_block_delta","index":0,
    "delta":{"type":"input_json_delta","partial_json":"{\"x\":"}})")
               + named("message_delta", R"({"type":"message_delta",
    "delta":{"stop_reason":"max_tokens"}})");
  auto r = streamed_reply(anthropic(), bytes);
  CHECK(r.finish_reason == "length");
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.tool_calls[0].arguments == "{\"x\":");
  CHECK(!arguments_of(r.tool_calls[0]));
}

TEST_CASE("an overloaded server says so inside a stream that began as 200", "[anthropic]") {
  auto f = streamed_failure(anthropic(), text_stream(named("error", R"({"type":"error",
      "error":{"type":"overloaded_error","message":"Overloaded"}})")));
  CHECK(f.kind == failure_class::overloaded);
}

TEST_CASE("a stream of Anthropic's that ends before its stop reason is no reply", "[anthropic]") {
  CHECK(streamed_failure(anthropic(), text_stream("")).kind == failure_class::bad_reply);
  auto r = streamed_reply(
    anthropic(),
    text_stream(named(
      "message_delta",
      R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}})")));
  CHECK(r.text == "Hi");
  CHECK(r.usage == token_usage{.input = 1, .output = 2});
}

TEST_CASE("usage in the last delta replaces what the start said, null changes nothing",
          "[anthropic]") {
  auto r = streamed_reply(
    anthropic(), text_stream(named("message_delta",
                                   R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},
      "usage":{"input_tokens":5,"cache_read_input_tokens":null,"output_tokens":2}})")));
  CHECK(r.usage == token_usage{.input = 5, .output = 2});
}

TEST_CASE("deltas of unknown kinds and of blocks that never began do no harm", "[anthropic]") {
  auto bytes = named("content_block_delta", R"({"type":"content_block_delta","index":5,
    "delta":{"type":"text_delta","text":"x"}})")
               + named("new_thing", R"({"type":"new_thing","a":1})")
               + named("content_block_delta", R"({"type":"content_block_delta",
    "delta":{"type":"new_delta"}})")
               + named("message_delta", R"({"type":"message_delta","delta":null})")
               + named("message_stop", R"({"type":"message_stop"})");
  CHECK(streamed_reply(anthropic(), bytes).text == "x");
}

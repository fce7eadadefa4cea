// The Responses API: requests, replies, and streams as api.openai.com and llama.cpp send them.
#include "tests/model/codec_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const codec& responses() {
  static const auto instance = make_codec({.wire = wire_format::openai_responses});
  return *instance;
}

json input_of(const std::vector<chat_message>& messages) {
  return body_of(responses(), {.model = "gpt-5"}, messages)["input"];
}

chat_message user(std::string text) {
  return {.from = role::user, .content = std::move(text)};
}

chat_message as_message(const model_reply& r) {
  return {.from = role::assistant, .content = r.text, .tool_calls = r.tool_calls, .kept = r.kept};
}

std::string named(std::string_view name, std::string_view members) {
  return "event: " + std::string{name} + "\n"
         + events({R"({"type":")" + std::string{name} + "\"" + std::string{members} + "}"});
}

constexpr std::string_view whole_reply = R"({"id":"resp_1","object":"response",
  "status":"completed","error":null,"incomplete_details":null,"model":"gpt-5-2025-08-07",
  "output":[
    {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Thinking."}],
     "encrypted_content":"gAAAA"},
    {"id":"msg_1","type":"message","status":"completed","role":"assistant",
     "content":[{"type":"output_text","text":"Asking ","annotations":[]},
                {"type":"output_text","text":"now.","annotations":[]}]},
    {"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1",
     "name":"get_weather","arguments":"{\"city\":\"Paris\"}"}],
  "usage":{"input_tokens":75,"input_tokens_details":{"cached_tokens":64},"output_tokens":1186,
           "output_tokens_details":{"reasoning_tokens":1024},"total_tokens":1261}})";

const std::string start_of_stream =
  named("response.created", R"(,"response":{"id":"resp_1","status":"in_progress","output":[]})")
  + named("response.output_item.added", R"(,"output_index":0,
      "item":{"id":"rs_1","type":"reasoning","summary":[]})")
  + named("response.reasoning_summary_text.delta", R"(,"output_index":0,"item_id":"rs_1",
      "summary_index":0,"delta":"Thinking.")")
  + named("response.output_item.done", R"(,"output_index":0,"item":{"id":"rs_1",
      "type":"reasoning","summary":[{"type":"summary_text","text":"Thinking."}],
      "encrypted_content":"gAAAA"})")
  + named("response.output_item.added", R"(,"output_index":1,"item":{"id":"msg_1",
      "type":"message","status":"in_progress","role":"assistant","content":[]})")
  + named("response.output_text.delta", R"(,"output_index":1,"content_index":0,
      "item_id":"msg_1","delta":"Asking ")")
  + named("response.output_text.delta", R"(,"output_index":1,"content_index":1,
      "item_id":"msg_1","delta":"now.")")
  + named("response.output_item.done", R"(,"output_index":1,"item":{"id":"msg_1",
      "type":"message","status":"completed","role":"assistant",
      "content":[{"type":"output_text","text":"Asking ","annotations":[]},
                 {"type":"output_text","text":"now.","annotations":[]}]})")
  + named("response.output_item.added", R"(,"output_index":2,"item":{"id":"fc_1",
      "type":"function_call","status":"in_progress","call_id":"call_1","name":"get_weather",
      "arguments":""})")
  + named("response.function_call_arguments.delta", R"(,"output_index":2,"item_id":"fc_1",
      "delta":"{\"city\":")")
  + named("response.function_call_arguments.delta", R"(,"output_index":2,"item_id":"fc_1",
      "delta":"\"Paris\"}")")
  + named("response.function_call_arguments.done", R"(,"output_index":2,"item_id":"fc_1",
      "arguments":"{\"city\":\"Paris\"}")");

const std::string last_item = named("response.output_item.done", R"(,"output_index":2,
  "item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1",
  "name":"get_weather","arguments":"{\"city\":\"Paris\"}"})");

std::string completed(std::string_view response) {
  return named("response.completed", ",\"response\":" + std::string{response});
}

}  // namespace

// -- requests ------------------------------------------------------------------------------------

TEST_CASE("messages and calls are items, and nothing is stored", "[responses]") {
  auto e = encoded(responses(), {.model = "gpt-4.1"}, {});
  CHECK(e.target == "/responses");
  auto body = body_of(responses(), {.model = "gpt-4.1", .max_output_tokens = 9, .stop = {"x"}},
                      {{.from = role::system, .content = "Be brief."}, user("hi")});
  CHECK(body == json::parse(R"({"model":"gpt-4.1","max_output_tokens":9,"store":false,
    "input":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]})"));

  auto items = input_of({user("go"),
                         {.from = role::assistant,
                          .content = "Asking.",
                          .tool_calls = {{"c1", "a", "{\"x\":1}"}, {"c2", "b", ""}}},
                         {.from = role::tool, .content = "one", .tool_call_id = "c1"},
                         {.from = role::assistant, .tool_calls = {{"c3", "a", "{}"}}}});
  CHECK(items == json::parse(R"([{"role":"user","content":"go"},
    {"role":"assistant","content":"Asking."},
    {"type":"function_call","call_id":"c1","name":"a","arguments":"{\"x\":1}"},
    {"type":"function_call","call_id":"c2","name":"b","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"one"},
    {"type":"function_call","call_id":"c3","name":"a","arguments":"{}"}])"));
}

TEST_CASE("images are parts of a message", "[responses]") {
  chat_message m = user("look");
  m.images = {"https://example.org/a.png"};
  CHECK(input_of({m})[0]["content"] == json::parse(R"([{"type":"input_text","text":"look"},
    {"type":"input_image","image_url":"https://example.org/a.png"}])"));
}

TEST_CASE("settings have the names of the Responses API", "[responses]") {
  model_settings s{.model = "gpt-5", .temperature = 1.0, .seed = 3};
  s.tools.emplace_back();
  s.tools[0].name = "add";
  s.tools[0].parameters = ordered_json::parse(R"({"type":"object"})");
  s.choice = {tool_choice::mode::named, "add"};
  s.parallel_tool_calls = false;
  s.output.emplace().schema = ordered_json::parse(R"({"type":"object"})");
  s.reasoning_effort = "low";
  s.extra_body = json::parse(R"({"store":true,"input":"no","service_tier":"flex"})");
  auto body = body_of(responses(), s, {user("x")}, delivery::streamed);
  CHECK(body["tools"] == json::parse(R"([{"type":"function","name":"add","description":"",
    "strict":false,"parameters":{"type":"object"}}])"));
  CHECK(body["tool_choice"] == json::parse(R"({"type":"function","name":"add"})"));
  CHECK(body["parallel_tool_calls"] == false);
  CHECK(body["text"] == json::parse(R"({"format":{"type":"json_schema","name":"answer",
    "strict":true,"schema":{"type":"object"}}})"));
  CHECK(body["reasoning"] == json::parse(R"({"effort":"low"})"));
  CHECK(body["include"] == json::array({"reasoning.encrypted_content"}));
  CHECK(body["store"] == true);
  CHECK(body["stream"] == true);
  CHECK(body["service_tier"] == "flex");
  CHECK(!body.contains("seed"));
  CHECK(body["input"].is_array());
}

TEST_CASE("Azure's Responses API has its own path and key", "[responses]") {
  auto classic = make_codec(
    {.wire = wire_format::openai_responses, .azure = true, .version = "2025-04-01-preview"});
  CHECK(encoded(*classic, {.model = "d"}, {}).target
        == "/openai/responses?api-version=2025-04-01-preview");
  CHECK(classic->headers("k") == header_list{{"api-key", "k"}});
  auto v1 = make_codec({.wire = wire_format::openai_responses, .azure = true});
  CHECK(encoded(*v1, {.model = "d"}, {}).target == "/responses");
}

// -- replies -------------------------------------------------------------------------------------

TEST_CASE("a response gives text, reasoning, calls and usage", "[responses]") {
  auto r = decoded(responses(), whole_reply);
  CHECK(r.text == "Asking now.");
  CHECK(r.reasoning == "Thinking.");
  REQUIRE(r.tool_calls.size() == 1);
  CHECK(r.tool_calls[0] == tool_call_message{"call_1", "get_weather", R"({"city":"Paris"})"});
  CHECK(r.finish_reason == "tool_calls");
  CHECK(r.model == "gpt-5-2025-08-07");
  CHECK(r.usage == token_usage{.input = 75, .output = 1186, .cached = 64, .reasoning = 1024});
}

TEST_CASE("reasoning goes back with the very reply that it came with, or not at all",
          "[responses]") {
  auto message = as_message(decoded(responses(), whole_reply));
  auto items = input_of({user("x"), message});
  items.erase(0);
  CHECK(items == json::parse(whole_reply)["output"]);
  message.content = "edited";
  items = input_of({user("x"), message});
  REQUIRE(items.size() == 3);
  CHECK(items[1] == json::parse(R"({"role":"assistant","content":"edited"})"));
  CHECK(items[2]["type"] == "function_call");
  CHECK(decoded(responses(), R"({"output":[{"type":"message","content":[]}]})").kept.empty());
}

TEST_CASE("ends have the words of chat completions", "[responses]") {
  auto incomplete = [](std::string_view reason) {
    return decoded(responses(), R"({"status":"incomplete","output":[],
      "incomplete_details":{"reason":")"
                                  + std::string{reason} + "\"}}")
      .finish_reason;
  };
  CHECK(incomplete("max_output_tokens") == "length");
  CHECK(incomplete("content_filter") == "content_filter");
  CHECK(decoded(responses(), R"({"status":"completed","output":[]})").finish_reason == "stop");
}

TEST_CASE("a response that failed, goes on, or has another shape is no reply", "[responses]") {
  auto bad = [](std::string_view body) {
    auto reply = responses().decode(body);
    REQUIRE(!reply);
    return reply.error();
  };
  auto f = bad(R"({"status":"failed","output":[],"error":{"code":"rate_limit_exceeded",
    "message":"Slow down"}})");
  CHECK(f.kind == failure_class::rate_limited);
  has(bad(R"({"status":"in_progress","output":[]})").detail, "status is 'in_progress'");
  has(bad("{}").detail, "no output");
  has(bad(R"({"output":[{"type":"function_call"}]})").detail, "names no function");
  CHECK(decoded(responses(), R"({"output":[1,null,{"type":"new_item"}]})").text.empty());
}

// -- streams -------------------------------------------------------------------------------------

TEST_CASE("a streamed response is the value of the same response in one piece", "[responses]") {
  auto bytes = start_of_stream + last_item + completed(whole_reply);
  CHECK(streamed_reply(responses(), bytes) == decoded(responses(), whole_reply));
  auto s = stream(responses(), bytes, 10);
  CHECK(s.complete);
  CHECK(s.text() == "Asking now.");
  CHECK(s.text(model_delta::kind::reasoning) == "Thinking.");
  CHECK(s.text(model_delta::kind::tool_call) == R"({"city":"Paris"})");
}

TEST_CASE("a last event without output is filled from the items before it", "[responses]") {
  auto last = json::parse(whole_reply);
  last["output"] = json::array();
  auto whole = decoded(responses(), whole_reply);
  CHECK(streamed_reply(responses(), start_of_stream + last_item + completed(last.dump())) == whole);
  // Not even the item's own end came: its pieces are all there is.
  last.erase("output");
  auto r = streamed_reply(responses(), start_of_stream + completed(last.dump()));
  CHECK(r.tool_calls == whole.tool_calls);
  auto text = streamed_reply(
    responses(), named("response.output_text.delta", R"(,"output_index":0,"delta":"Hi")")
                   + completed(R"({"status":"completed"})"));
  CHECK(text.text == "Hi");
}

TEST_CASE("an incomplete response is a reply that ended early", "[responses]") {
  auto bytes = named("response.incomplete", R"(,"response":{"status":"incomplete",
    "incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message",
    "content":[{"type":"output_text","text":"Onc"}]}]})");
  // The text came in the last event alone: viewers see it all the same.
  auto r = streamed_reply(responses(), bytes);
  CHECK(r.text == "Onc");
  CHECK(r.finish_reason == "length");
}

TEST_CASE("errors in a stream of responses come in three shapes", "[responses]") {
  CHECK(
    streamed_failure(
      responses(),
      start_of_stream
        + named(
          "response.failed",
          R"(,"response":{"status":"failed","error":{"code":"server_error","message":"boom"}})"))
      .kind
    == failure_class::server);
  auto f = streamed_failure(
    responses(),
    named("error", R"(,"code":"rate_limit_exceeded","message":"Slow down","param":null)"));
  CHECK(f.kind == failure_class::rate_limited);
  has(f.detail, "Slow down");
  CHECK(
    streamed_failure(responses(),
                     named("error", R"(,"error":{"type":"invalid_request_error","message":"no"})"))
      .kind
    == failure_class::bad_request);
}

TEST_CASE("a stream of responses without its last event is no reply", "[responses]") {
  CHECK(streamed_failure(responses(), start_of_stream + last_item).kind
        == failure_class::bad_reply);
  has(streamed_failure(responses(), named("response.completed", "")).detail, "no response");
}

TEST_CASE("stop sequences are cut here, because the API has none", "[responses]") {
  auto r = streamed_reply(responses(), start_of_stream + last_item + completed(whole_reply),
                          {.stop = {" now"}});
  CHECK(r.text == "Asking");
  CHECK(r.finish_reason == "stop");
  CHECK(r.tool_calls.empty());
}

#include "runtime/core/json.hpp"
#include "runtime/model/codec.hpp"
#include "tests/model/codec_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

std::string encoded(const chat_message& message) {
  std::string out;
  openai_codec().encoder()(out, message, 0);
  return out;
}

std::string body_of(const model_settings& settings, const transcript& messages) {
  model_request request;
  request.settings = std::make_shared<model_settings>(settings);
  request.messages = messages.view();
  auto e = openai_codec().encode(request, delivery::whole);
  auto body = e.head + e.messages.text() + e.tail;
  CHECK(body.size() == e.bytes());
  return body;
}

json request_of(const model_settings& settings) {
  transcript t{openai_codec().encoder()};
  t.append({.from = role::user, .content = "hi"});
  return json::parse(body_of(settings, t));
}

}  // namespace

TEST_CASE("plain messages carry their role and text", "[openai]") {
  CHECK(encoded({.from = role::system, .content = "Be brief."})
        == R"({"role":"system","content":"Be brief."})");
  CHECK(encoded({.from = role::user, .content = "a \"b\"\n\\ \x01 é"})
        == R"({"role":"user","content":"a \"b\"\n\\ \u0001 é"})");
  CHECK(encoded({.from = role::assistant, .content = ""})
        == R"({"role":"assistant","content":""})");
}

TEST_CASE("bytes that are not UTF-8 never reach the wire", "[openai]") {
  CHECK(encoded({.from = role::user, .content = "\xff!"})
        == "{\"role\":\"user\",\"content\":\"\xEF\xBF\xBD!\"}");
}

TEST_CASE("a tool turn keeps its ids, names and argument text", "[openai]") {
  chat_message asks{.from = role::assistant,
                    .tool_calls = {{"call_1", "add", R"({"a": 1})"}, {"call_2", "now", ""}}};
  auto m = json::parse(encoded(asks));
  CHECK(m["content"].is_null());
  CHECK(m["tool_calls"].size() == 2);
  CHECK(
    m["tool_calls"][0]
    == json::parse(
      R"({"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}})"));
  CHECK(m["tool_calls"][1]["function"]["arguments"] == "{}");

  asks.content = "Let me add.";
  CHECK(json::parse(encoded(asks))["content"] == "Let me add.");
  CHECK(encoded({.from = role::tool, .content = "2", .tool_call_id = "call_1"})
        == R"({"role":"tool","tool_call_id":"call_1","content":"2"})");
}

TEST_CASE("only the settings that are set are sent", "[openai]") {
  auto body = request_of({.model = "llama"});
  CHECK(body == json::parse(R"({"model":"llama","messages":[{"role":"user","content":"hi"}]})"));
}

TEST_CASE("all settings have their member", "[openai]") {
  model_settings s{.model = "llama",
                   .temperature = 0.7,
                   .max_output_tokens = 100,
                   .seed = -3,
                   .stop = {"<end>", "\n"}};
  tool_spec add;
  add.name = "add";
  add.description = "Adds \"two\" numbers.";
  add.parameters = ordered_json::parse(
    R"({"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}}})");
  s.tools = {add, add};
  auto body = request_of(s);
  CHECK(body["temperature"].dump() == "0.7");
  CHECK(body["max_tokens"] == 100);
  CHECK(body["seed"] == -3);
  CHECK(body["stop"] == json::array({"<end>", "\n"}));
  REQUIRE(body["tools"].size() == 2);
  CHECK(body["tools"][0]["type"] == "function");
  CHECK(body["tools"][0]["function"]["name"] == "add");
  CHECK(body["tools"][0]["function"]["description"] == "Adds \"two\" numbers.");
  CHECK(body["tools"][0]["function"]["parameters"]["properties"].contains("b"));
}

TEST_CASE("the order of a tool's parameters is kept", "[openai]") {
  model_settings s{.model = "m"};
  s.tools.emplace_back();
  s.tools[0].parameters = ordered_json::parse(R"({"properties":{"zeta":1,"alpha":2}})");
  transcript t{openai_codec().encoder()};
  auto body = body_of(s, t);
  CHECK(body.find(R"({"zeta":1,"alpha":2})") != std::string::npos);
  CHECK(body.ends_with("\"messages\":[]}"));
}

TEST_CASE("OpenAI's own models get max_completion_tokens, all others max_tokens", "[openai]") {
  auto field = [](std::string model) {
    auto body = request_of({.model = std::move(model), .max_output_tokens = 5});
    CHECK(body.contains("max_tokens") != body.contains("max_completion_tokens"));
    return body.contains("max_tokens") ? "max_tokens" : "max_completion_tokens";
  };
  for (auto* model : {"gpt-4o", "gpt-5-mini", "o1", "o3-mini", "chatgpt-4o-latest", "openai/gpt-5"})
    CHECK(field(model) == std::string{"max_completion_tokens"});
  for (auto* model : {"gpt-oss:20b", "openai/gpt-oss-120b", "llama3", "olmo-2", "Qwen/Qwen3", "o"})
    CHECK(field(model) == std::string{"max_tokens"});
}

TEST_CASE("extra members are added, replace ours, or take ours away with null", "[openai]") {
  model_settings s{.model = "gpt-5", .temperature = 1.0, .max_output_tokens = 9};
  s.extra_body = json::parse(
    R"({"temperature":null,"max_completion_tokens":7,"reasoning_effort":"low","a":{"b":[1]},
        "messages":"dropped","stream":true})");
  auto body = request_of(s);
  CHECK(!body.contains("temperature"));
  CHECK(body["max_completion_tokens"] == 7);
  CHECK(body["reasoning_effort"] == "low");
  CHECK(body["a"]["b"][0] == 1);
  CHECK(body["messages"].is_array());
  CHECK(!body.contains("stream"));
  CHECK(body["model"] == "gpt-5");
}

TEST_CASE("the messages of a request are the transcript's own bytes", "[openai]") {
  transcript t{openai_codec().encoder()};
  t.append({.from = role::user, .content = "hi"});
  model_request request;
  request.settings = std::make_shared<model_settings>();
  request.messages = t.view();
  CHECK(openai_codec().encode(request, delivery::whole).messages.pieces()[0].data()
        == t.view().pieces()[0].data());
}

TEST_CASE("the key travels as a bearer token, without the newline of its file", "[openai]") {
  CHECK(openai_codec().headers("sk-1\n") == header_list{{"authorization", "Bearer sk-1"}});
  CHECK(openai_codec().headers("").empty());
}

TEST_CASE("a streamed request asks for usage, and extra members may decline it", "[openai]") {
  model_settings s{.model = "m"};
  auto body = test::body_of(openai_codec(), s, {}, delivery::streamed);
  CHECK(body["stream"] == true);
  CHECK(body["stream_options"] == json::parse(R"({"include_usage":true})"));
  s.extra_body = json::parse(R"({"stream_options":null,"stream":false})");
  body = test::body_of(openai_codec(), s, {}, delivery::streamed);
  CHECK(body["stream"] == true);
  CHECK(!body.contains("stream_options"));
}

TEST_CASE("tool choice, parallel calls, a schema for the answer and effort have their members",
          "[openai]") {
  using enum tool_choice::mode;
  model_settings s{.model = "m", .choice = {required, ""}, .parallel_tool_calls = false};
  CHECK(!request_of(s).contains("tool_choice"));
  s.tools.emplace_back();
  s.output.emplace().schema = ordered_json::parse(R"({"type":"object","properties":{}})");
  s.reasoning_effort = "low";
  auto body = request_of(s);
  CHECK(body["tool_choice"] == "required");
  CHECK(body["parallel_tool_calls"] == false);
  CHECK(body["response_format"] == json::parse(R"({"type":"json_schema","json_schema":
    {"name":"answer","strict":true,"schema":{"type":"object","properties":{}}}})"));
  CHECK(body["reasoning_effort"] == "low");
  s.choice = {named, "f"};
  CHECK(request_of(s)["tool_choice"]
        == json::parse(R"({"type":"function","function":{"name":"f"}})"));
  s.choice = {none, ""};
  CHECK(request_of(s)["tool_choice"] == "none");
}

TEST_CASE("models that refuse stop sequences do not get them", "[openai]") {
  auto sent = [](std::string model) {
    return request_of({.model = std::move(model), .stop = {"x"}}).contains("stop");
  };
  for (auto* model : {"o3-mini", "gpt-5", "openai/gpt-5-mini"})
    CHECK(!sent(model));
  for (auto* model : {"gpt-4.1", "gpt-5-chat-latest", "gpt-oss:20b", "llama"})
    CHECK(sent(model));
}

TEST_CASE("images are parts beside the text", "[openai]") {
  CHECK(json::parse(encoded({.from = role::user,
                             .content = "look",
                             .images = {"https://e.org/a.png", "data:image/png;base64,AA=="}}))
        == json::parse(R"({"role":"user","content":[{"type":"text","text":"look"},
    {"type":"image_url","image_url":{"url":"https://e.org/a.png"}},
    {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]})"));
}

TEST_CASE("Azure: the key is api-key, and an API version puts the deployment into the path",
          "[openai]") {
  auto v1 = make_codec({.azure = true});
  CHECK(v1->headers("k") == header_list{{"api-key", "k"}});
  CHECK(test::encoded(*v1, {.model = "d"}, {}).target == "/chat/completions");
  auto classic = make_codec({.azure = true, .version = "2024-10-21"});
  CHECK(test::encoded(*classic, {.model = "my deployment"}, {}).target
        == "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21");
  CHECK(test::body_of(*v1, {.model = "d", .max_output_tokens = 5}, {})
          .contains("max_completion_tokens"));
}

TEST_CASE("what the provider wants back goes back: Gemini's signature, reasoning, unknown members",
          "[openai]") {
  auto sent_back = [](std::string_view message) {
    auto r =
      test::decoded(openai_codec(), R"({"choices":[{"message":)" + std::string{message} + "}]}");
    return json::parse(encoded(
      {.from = role::assistant, .content = r.text, .tool_calls = r.tool_calls, .kept = r.kept}));
  };
  auto signed_call = json::parse(R"({"role":"assistant","content":null,"tool_calls":[
    {"id":"a","type":"function","function":{"name":"f","arguments":"{}"},
     "extra_content":{"google":{"thought_signature":"Cs\/QB"}}}]})");
  CHECK(sent_back(signed_call.dump()) == signed_call);

  // DeepSeek, Kimi, vLLM: reasoning belongs to a turn with calls; behind plain text it is refused.
  auto thinking = signed_call;
  thinking["reasoning_content"] = "hm";
  CHECK(sent_back(thinking.dump()) == thinking);
  CHECK(sent_back(R"({"role":"assistant","content":"x","reasoning_content":"hm"})")
        == json::parse(R"({"role":"assistant","content":"x"})"));

  auto unknown = json::parse(R"({"role":"assistant","content":"x",
    "reasoning_details":[{"type":"reasoning.encrypted","data":"Z"}],"new_thing":{"a":[1]}})");
  CHECK(sent_back(unknown.dump()) == unknown);
  CHECK(sent_back(R"({"role":"assistant","content":"x","refusal":null,"annotations":[],
    "new_thing":null,"audio":{"id":"a"}})")
        == json::parse(R"({"role":"assistant","content":"x"})"));
}

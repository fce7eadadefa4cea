#include "runtime/core/json.hpp"
#include "runtime/model/codec.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

std::string encoded(const chat_message& message) {
  std::string out;
  openai_codec().encoder()(out, message);
  return out;
}

std::string body_of(const model_settings& settings, const transcript& messages) {
  model_request request;
  request.settings = std::make_shared<model_settings>(settings);
  request.messages = messages.view();
  auto e = openai_codec().encode(request);
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
  CHECK(openai_codec().encode(request).messages.pieces()[0].data() == t.view().pieces()[0].data());
}

TEST_CASE("the key travels as a bearer token, without the newline of its file", "[openai]") {
  CHECK(openai_codec().authorize("sk-1\n") == header_list{{"authorization", "Bearer sk-1"}});
  CHECK(openai_codec().authorize("").empty());
  CHECK(openai_codec().path() == "/chat/completions");
}

// What providers' prompt caches go by: each turn's request begins with the bytes of the one before.
#include "tests/model/codec_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

tool_spec add_tool() {
  tool_spec tool;
  tool.name = "add";
  tool.description = "adds";
  tool.parameters = ordered_json::parse(R"({"type":"object","properties":{"b":{},"a":{}}})");
  return tool;
}

model_settings settings_with_all() {
  model_settings s{.model = "m"};
  s.temperature = 0.7;
  s.max_output_tokens = 500;
  s.seed = 3;
  s.stop = {"</code>"};
  s.tools = {add_tool(), add_tool()};
  s.extra_body = {{"zeta", 1}, {"alpha", {{"d", 1}, {"c", 2}}}};
  return s;
}

/// What a run appends over several turns, one turn each: text, calls, results, kept parts, images.
std::vector<std::vector<chat_message>> turns(std::string kept) {
  using list = std::vector<chat_message>;
  chat_message asked{.from = role::user, .content = "What is it?"};
  asked.images = {"data:image/png;base64,AAAA"};
  chat_message called{.from = role::assistant, .content = "Hm."};
  called.tool_calls = {{"c1", "add", R"({"a":1})", {}}, {"c2", "add", "{}", {}}};
  called.kept = std::move(kept);
  chat_message first{.from = role::tool, .content = "1", .tool_call_id = "c1"};
  chat_message second{.from = role::tool, .content = "no", .tool_call_id = "c2", .failed = true};
  return {list{{.from = role::system, .content = "Be brief."}, asked}, list{called, first, second},
          list{{.from = role::assistant, .content = "So\n<code>"},
               {.from = role::user, .content = "Observation: \u00e9"}},
          list{{.from = role::assistant, .content = ""}, {.from = role::user, .content = "On."}}};
}

struct wire {
  std::string name;
  codec_options how;
  std::string kept;
};

std::vector<wire> wires() {
  return {
    {"chat", {}, R"({"reasoning_content":"r"})"},
    {"azure", {.azure = true, .version = "2024-10-21"}, ""},
    {"responses", {.wire = wire_format::openai_responses}, R"([{"type":"reasoning","id":"r"}])"},
    {"messages",
     {.wire = wire_format::anthropic},
     R"([{"type":"thinking","thinking":"t","signature":"s"}])"},
    {"marked messages", {.wire = wire_format::anthropic, .prompt_cache = true}, ""},
  };
}

}  // namespace

TEST_CASE("each turn's request begins with the one before, byte for byte, in every wire format",
          "[prompt_cache]") {
  for (auto& [name, how, kept] : wires()) {
    INFO(name);
    auto format = make_codec(how);
    auto settings = std::make_shared<const model_settings>(settings_with_all());
    for (auto delivered : {delivery::whole, delivery::streamed}) {
      transcript t{format->encoder()};
      std::string before;
      for (auto& turn : turns(kept)) {
        for (auto& message : turn)
          t.append(message);
        model_request request;
        request.settings = settings;
        request.messages = t.view();
        auto e = format->encode(request, delivered);
        auto body = e.head + e.messages.text();
        REQUIRE(json::accept(body + e.tail));
        CHECK(body.size() > before.size());
        CHECK(body.starts_with(before));
        before = std::move(body);
      }
    }
  }
}

TEST_CASE("runs of one agent share everything before their tasks", "[prompt_cache]") {
  for (auto& [name, how, kept] : wires()) {
    INFO(name);
    auto format = make_codec(how);
    transcript system{format->encoder()};
    system.append({.from = role::system, .content = "Be brief."});
    auto one = system, other = system;
    one.append({.from = role::user, .content = "a"});
    other.append({.from = role::user, .content = "b"});
    CHECK(one.view().text().starts_with(system.view().text()));
    CHECK(other.view().text().starts_with(system.view().text()));
  }
}

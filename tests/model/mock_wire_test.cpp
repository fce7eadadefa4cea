// The server's side of the wire formats: request bodies as the providers' references show them, and
// replies read back by the codecs, which were written apart. The official SDKs judge the same bytes
// in tests/e2e/mock_test.py.
#include "runtime/model/mock_wire.hpp"
#include "tests/model/codec_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

mock_ask read(const mock_wire& wire, std::string_view body) {
  auto parsed = json::parse(body);
  auto ask = wire.read(parsed);
  INFO((ask ? std::string{} : ask.error().message));
  REQUIRE(ask);
  return *ask;
}

mock_error refused(const mock_wire& wire, std::string_view body) {
  auto ask = wire.read(json::parse(body));
  REQUIRE(!ask);
  return ask.error();
}

mock_message full_message() {
  mock_message m;
  m.id = "00ff";
  m.created = 1'700'000'000;
  m.reply.text = "Ein Gruß aus \"Köln\" \xF0\x9F\x98\x80\nline two";
  m.reply.model = "scripted";
  m.reply.finish_reason = "tool_calls";
  m.reply.tool_calls = {{"call_1", "add", R"({"a":1,"b":[2,"x"]})", ""},
                        {"call_2", "now", "{}", ""}};
  m.reply.usage.input = 100;
  m.reply.usage.output = 20;
  m.reply.usage.cached = 40;
  m.include_usage = true;
  m.chunk_bytes = 4;
  return m;
}

std::shared_ptr<const codec> client_of(const mock_wire& wire) {
  return make_codec({.wire = wire.format});
}

/// What must come back, whatever the way. `kept` is the client's own business.
void check_same(const model_outcome& got, const mock_message& sent) {
  INFO((got ? std::string{} : got.error().detail));
  REQUIRE(got);
  CHECK(got->text == sent.reply.text);
  CHECK(got->reasoning == sent.reply.reasoning);
  CHECK(got->model == sent.reply.model);
  CHECK(got->finish_reason == sent.reply.finish_reason);
  CHECK(got->usage.input == sent.reply.usage.input);
  CHECK(got->usage.output == sent.reply.usage.output);
  CHECK(got->usage.cached == sent.reply.usage.cached);
  REQUIRE(got->tool_calls.size() == sent.reply.tool_calls.size());
  for (std::size_t i = 0; i < got->tool_calls.size(); ++i) {
    CHECK(got->tool_calls[i].id == sent.reply.tool_calls[i].id);
    CHECK(got->tool_calls[i].name == sent.reply.tool_calls[i].name);
    CHECK(json::parse(got->tool_calls[i].arguments)
          == json::parse(sent.reply.tool_calls[i].arguments));
  }
}

std::string joined(const std::vector<std::string>& events) {
  std::string out;
  for (auto& e : events)
    out += e;
  return out;
}

const std::vector<const mock_wire*>& all_wires() {
  static const std::vector<const mock_wire*> wires = {&mock_chat(), &mock_responses(),
                                                      &mock_messages()};
  return wires;
}

}  // namespace

TEST_CASE("chat: task, turn and what came last are found", "[mock_wire]") {
  auto ask =
    read(mock_chat(), R"({"model":"m","stream":true,"stream_options":{"include_usage":true},
    "max_completion_tokens":50,"stop":["\n\n","END"],"messages":[
    {"role":"developer","content":"be brief"},
    {"role":"user","content":"example"},
    {"role":"user","content":[{"type":"text","text":"What is "},{"type":"text","text":"2+2?"},
                              {"type":"image_url","image_url":{"url":"data:,"}}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
      "function":{"name":"add","arguments":"{}"}},{"id":"c2","type":"function",
      "function":{"name":"add","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"4"},
    {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"5"}]}]})");
  CHECK(ask.model == "m");
  CHECK(ask.task == "What is 2+2?");
  CHECK(ask.last == "4\n5");
  CHECK(ask.turn == 1);
  CHECK(ask.stream);
  CHECK(ask.include_usage);
  CHECK(ask.max_tokens == 50);
  CHECK(ask.stop == std::vector<std::string>{"\n\n", "END"});
  CHECK(read(mock_chat(), R"({"model":"m","stop":"x","max_tokens":7,
    "messages":[{"role":"user","content":"hi"}]})")
        == mock_ask{.model = "m", .task = "hi", .last = "hi", .max_tokens = 7, .stop = {"x"}});
}

TEST_CASE("chat: requests that are none are refused by parameter", "[mock_wire]") {
  CHECK(refused(mock_chat(), R"({"messages":[]})").param == "model");
  CHECK(refused(mock_chat(), R"({"model":"m"})").param == "messages");
  CHECK(refused(mock_chat(), R"({"model":"m","messages":"hi"})").code == "invalid_type");
  CHECK(refused(mock_chat(), R"({"model":7,"messages":[]})").status == 400);
}

TEST_CASE("responses: a text, or items of which the model's own count as one turn", "[mock_wire]") {
  auto plain = read(mock_responses(), R"({"model":"m","input":"hi","max_output_tokens":9})");
  CHECK(plain == mock_ask{.model = "m", .task = "hi", .last = "hi", .max_tokens = 9});
  auto ask = read(mock_responses(), R"({"model":"m","stream":true,"previous_response_id":"resp_1",
    "input":[{"role":"developer","content":"be brief"},
    {"role":"user","content":[{"type":"input_text","text":"add"}]},
    {"type":"reasoning","id":"rs","summary":[]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"four"},
    {"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"five"}]}]})");
  CHECK(ask.task == "add");
  CHECK(ask.last == "five");
  CHECK(ask.turn == 2);
  CHECK(ask.stream);
  CHECK(ask.previous == "resp_1");
  CHECK(refused(mock_responses(), R"({"model":"m"})").param == "input");
}

TEST_CASE("messages: blocks, tool results and the limit that must be there", "[mock_wire]") {
  auto ask = read(mock_messages(), R"({"model":"m","max_tokens":1024,"system":"be brief",
    "stop_sequences":["END"],"messages":[
    {"role":"user","content":[{"type":"text","text":"add"}]},
    {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"four"}]},
      {"type":"tool_result","tool_use_id":"t2","content":"five","is_error":true},
      {"type":"text","text":"six"}]}]})");
  CHECK(ask.task == "add");
  CHECK(ask.last == "fourfivesix");
  CHECK(ask.turn == 1);
  CHECK(ask.max_tokens == 1024);
  CHECK(ask.stop == std::vector<std::string>{"END"});
  CHECK(refused(mock_messages(), R"({"model":"m","messages":[]})").message
        == "max_tokens: Field required");
  CHECK(refused(mock_messages(), R"({"model":"m","max_tokens":5,"messages":[]})").status == 400);
}

TEST_CASE("the codecs read a whole reply as it was meant", "[mock_wire]") {
  for (auto* wire : all_wires()) {
    INFO("wire " << static_cast<int>(wire->format));
    auto m = full_message();
    if (wire->format == wire_format::openai_responses)
      m.reply.finish_reason = "tool_calls";
    check_same(client_of(*wire)->decode(wire->whole(m)), m);
    m.reply.tool_calls.clear();
    m.reply.finish_reason = "stop";
    check_same(client_of(*wire)->decode(wire->whole(m)), m);
    m.reply.finish_reason = "length";
    check_same(client_of(*wire)->decode(wire->whole(m)), m);
  }
}

TEST_CASE("the codecs read a stream as they read the whole reply", "[mock_wire]") {
  for (auto* wire : all_wires())
    for (std::size_t size : {1, 7, 100'000}) {
      INFO("wire " << static_cast<int>(wire->format));
      auto m = full_message();
      m.reply.reasoning = "First, the Köln bridge.";
      auto format = client_of(*wire);
      auto got = stream(*format, joined(wire->events(m)), size);
      check_same(got.outcome, m);
      CHECK(got.text() == m.reply.text);
      CHECK(got.complete);
      m.reply.text.clear();
      m.reply.tool_calls.resize(1);
      check_same(stream(*format, joined(wire->events(m)), size).outcome, m);
    }
}

TEST_CASE("a text that is empty is a reply all the same", "[mock_wire]") {
  for (auto* wire : all_wires()) {
    mock_message m;
    m.id = "1";
    m.reply.model = "scripted";
    m.reply.finish_reason = "stop";
    check_same(stream(*client_of(*wire), joined(wire->events(m)), 64).outcome, m);
  }
}

TEST_CASE("chat: usage stands in a last event without choices, only when asked for",
          "[mock_wire]") {
  // platform.openai.com/docs/api-reference/chat/create, stream_options: "All other chunks will also
  // include a usage field, but with a null value."
  auto m = full_message();
  auto events = mock_chat().events(m);
  REQUIRE(events.size() > 3);
  CHECK(events.back() == "data: [DONE]\n\n");
  auto data = [](const std::string& event) { return json::parse(event.substr(6)); };
  auto usage = data(events[events.size() - 2]);
  CHECK(usage["choices"].empty());
  CHECK(usage["usage"]["total_tokens"] == 120);
  CHECK(data(events[0])["usage"].is_null());
  CHECK(data(events[0]).contains("usage"));
  CHECK(data(events[0])["choices"][0]["delta"]["role"] == "assistant");
  m.include_usage = false;
  for (auto& event : mock_chat().events(m))
    CHECK(event.find("usage") == std::string::npos);
}

TEST_CASE("messages: a stop sequence is named, usage leaves out what the cache had",
          "[mock_wire]") {
  auto m = full_message();
  m.reply.tool_calls.clear();
  m.reply.finish_reason = "stop";
  m.stop_sequence = "END";
  auto whole = json::parse(mock_messages().whole(m));
  CHECK(whole["stop_reason"] == "stop_sequence");
  CHECK(whole["stop_sequence"] == "END");
  CHECK(whole["usage"]["input_tokens"] == 60);
  CHECK(whole["usage"]["cache_read_input_tokens"] == 40);
  m.stop_sequence.clear();
  CHECK(json::parse(mock_messages().whole(m))["stop_reason"] == "end_turn");
}

TEST_CASE("responses: events are numbered in order and name their item", "[mock_wire]") {
  auto events = mock_responses().events(full_message());
  std::set<std::string> items;
  for (std::size_t i = 0; i < events.size(); ++i) {
    auto line = events[i].find("\ndata: ");
    REQUIRE(line != std::string::npos);
    auto data = json::parse(events[i].substr(line + 7));
    CHECK(events[i].substr(7, line - 7) == data["type"].get<std::string>());
    CHECK(data["sequence_number"] == i);
    if (data["type"] == "response.output_item.added")
      items.insert(data["item"]["id"].get<std::string>());
    if (data.contains("item_id"))
      CHECK(items.contains(data["item_id"].get<std::string>()));
  }
  CHECK(items.size() == 3);
}

TEST_CASE("errors have the shape and the words of their provider", "[mock_wire]") {
  // platform.openai.com/docs/guides/error-codes, docs.claude.com/en/api/errors
  auto limited = error_of(fault_kind::rate_limited, wire_format::openai_chat);
  auto openai = json::parse(error_body(wire_format::openai_chat, limited, "req_1"));
  CHECK(limited.status == 429);
  CHECK(openai["error"]["code"] == "rate_limit_exceeded");
  CHECK(openai["error"]["param"].is_null());
  auto overloaded = error_of(fault_kind::overloaded, wire_format::anthropic);
  CHECK(overloaded.status == 529);
  auto anthropic = json::parse(error_body(wire_format::anthropic, overloaded, "req_1"));
  CHECK(anthropic["type"] == "error");
  CHECK(anthropic["error"]["type"] == "overloaded_error");
  CHECK(anthropic["request_id"] == "req_1");
}

TEST_CASE("the codecs see the class of every error, in a status and in mid-stream", "[mock_wire]") {
  struct row {
    fault_kind fault;
    failure_class seen;
  };
  for (auto* wire : all_wires()) {
    auto format = client_of(*wire);
    for (auto [fault, seen] : {row{fault_kind::rate_limited, failure_class::rate_limited},
                               row{fault_kind::overloaded, failure_class::overloaded},
                               row{fault_kind::server, failure_class::server},
                               row{fault_kind::auth, failure_class::auth},
                               row{fault_kind::bad_request, failure_class::bad_request},
                               row{fault_kind::context_length, failure_class::context_length}}) {
      auto e = error_of(fault, wire->format);
      INFO("wire " << static_cast<int>(wire->format) << ", " << to_string(fault));
      CHECK(format->classify(e.status, {}, error_body(wire->format, e, "r")).kind == seen);
    }
    auto e = error_of(fault_kind::error_event, wire->format);
    auto broken = stream(*format, error_event(wire->format, e, "r"), 9);
    REQUIRE(!broken.outcome);
    CHECK(broken.outcome.error().kind
          == (wire->format == wire_format::anthropic ? failure_class::overloaded
                                                     : failure_class::server));
  }
}

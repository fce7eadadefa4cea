#include "runtime/model/codec.hpp"
#include "runtime/model/mock_model.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

mock_script script_of(std::string_view text) {
  auto script = mock_script::parse(text);
  INFO((script ? std::string{} : script.error().detail));
  REQUIRE(script);
  return *script;
}

/// A request whose first user message is `task`, with `turn` replies and observations after it.
model_request asked(const std::string& task, std::uint32_t turn = 0,
                    const std::string& last = "Observation: ok") {
  transcript t{openai_codec().encoder()};
  t.append({.from = role::system, .content = "Say \"{\\\"role\\\":\\\"assistant\\\"\" often."});
  t.append({.from = role::user, .content = task});
  for (std::uint32_t i = 0; i < turn; ++i) {
    t.append({.from = role::assistant, .content = "reply " + std::to_string(i)});
    t.append({.from = role::user, .content = i + 1 == turn ? last : "Observation"});
  }
  model_request request;
  auto settings = std::make_shared<model_settings>();
  settings->model = "scripted";
  request.settings = settings;
  request.messages = t.view();
  request.turn = turn;
  return request;
}

std::string text_of(const mock_script& script, const model_request& request) {
  rng random{1};
  auto drawn = script.answer(request, random);
  REQUIRE(drawn.reply);
  return drawn.reply->text;
}

std::string error_of(std::string_view text) {
  auto script = mock_script::parse(text);
  REQUIRE(!script);
  CHECK(script.error().code == errc::invalid_argument);
  return script.error().detail;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a conversation is found by its task and answers turn by turn", "[mock]") {
  auto s = script_of(R"({"conversations":[
    {"task":"What is 2+2?","replies":["first","second"]},
    {"task":"other","replies":["x"]}],"default":"fallback"})");
  CHECK(text_of(s, asked("What is 2+2?")) == "first");
  CHECK(text_of(s, asked("What is 2+2?", 1)) == "second");
  CHECK(text_of(s, asked("What is 2+2?", 2)) == "fallback");
  CHECK(text_of(s, asked("New task:\nWhat is 2+2?", 1)) == "second");
  CHECK(text_of(s, asked("other")) == "x");
  CHECK(text_of(s, asked("What is 2+2? ")) == "fallback");
}

TEST_CASE("tasks with quotes, newlines, JSON and other scripts are found", "[mock]") {
  for (std::string task :
       {"say \"hi\"}", "two\nlines\t\\ end\\", "{\"role\":\"user\",\"content\":\"x\"}", "日本語 é",
        "", "New task:\nNew task:\nnested"}) {
    json script;
    auto key = task.starts_with("New task:\n") ? task.substr(10) : task;
    script["conversations"] = json::array({{{"task", key}, {"replies", {"found"}}}});
    CHECK(text_of(script_of(script.dump()), asked(task)) == "found");
    CHECK(text_of(script_of(script.dump()), asked(task, 3)).find("no reply") != std::string::npos);
  }
}

TEST_CASE("the task is the last user message before the first assistant message", "[mock]") {
  auto s = script_of(R"({"conversations":[{"task":"the task","replies":["a","b"]}]})");
  transcript t{openai_codec().encoder()};
  t.append({.from = role::user, .content = "an example"});
  t.append({.from = role::user, .content = "the task"});
  model_request request;
  request.messages = t.view();
  CHECK(text_of(s, request) == "a");
  t.append({.from = role::assistant, .tool_calls = {{"id", "f", "{\"role\":\"user\"}"}}});
  t.append({.from = role::tool, .content = "{\"role\":\"user\"}", .tool_call_id = "id"});
  t.append({.from = role::user, .content = "later"});
  request.messages = t.view();
  request.turn = 1;
  CHECK(text_of(s, request) == "b");
}

TEST_CASE("the first rule that fits answers, all its conditions together", "[mock]") {
  auto s = script_of(R"({"rules":[
    {"if_last_contains":"Error:","from_turn":2,"reply":"late error"},
    {"if_last_contains":"Error:\n","reply":"error"},
    {"if_task_contains":"\"sum\"","if_last_contains":"ok","reply":"sum ok"},
    {"from_turn":3,"reply":"third"}],"default":"none"})");
  CHECK(text_of(s, asked("t", 1, "Error:\nboom")) == "error");
  CHECK(text_of(s, asked("t", 1, "Error: boom")) == "none");
  CHECK(text_of(s, asked("t", 2, "Error: boom")) == "late error");
  CHECK(text_of(s, asked("the \"sum\"", 1, "ok")) == "sum ok");
  CHECK(text_of(s, asked("the sum", 1, "ok")) == "none");
  CHECK(text_of(s, asked("t", 3)) == "third");
}

TEST_CASE("a rule's text is matched as text, not as escaped bytes", "[mock]") {
  auto s = script_of(R"({"rules":[{"if_last_contains":"name","reply":"hit"}],"default":"miss"})");
  CHECK(text_of(s, asked("t", 1, "\name")) == "miss");
  CHECK(text_of(s, asked("t", 1, "a name")) == "hit");
}

TEST_CASE("with nothing that fits the reply says what to add", "[mock]") {
  auto text = text_of(script_of("{}"), asked("solve\nthis", 4));
  has(text, "turn 4");
  has(text, "solve this");
}

TEST_CASE("what came last is all since the model's last reply, results of tools included",
          "[mock]") {
  auto s = script_of(R"({"rules":[{"if_last_contains":"first\nsecond","reply":"both"}],
    "default":"miss"})");
  transcript t{openai_codec().encoder()};
  t.append({.from = role::user, .content = "first"});
  t.append({.from = role::assistant, .tool_calls = {{"a", "f", "{}"}, {"b", "f", "{}"}}});
  t.append({.from = role::tool, .content = "first", .tool_call_id = "a"});
  t.append({.from = role::tool, .content = "second", .tool_call_id = "b"});
  model_request request;
  request.messages = t.view();
  request.turn = 1;
  CHECK(text_of(s, request) == "both");
}

TEST_CASE("a reply may call tools, think, name its end, its usage and its latency", "[mock]") {
  auto s = script_of(R"({"latency":{"median_ms":50},"rules":[{"from_turn":1,"reply":
      {"text":"t","finish_reason":"length"}}],"default":{"reasoning":"hm","tool_calls":[
      {"name":"add","arguments":{"a":1}},{"name":"raw","arguments":"{\"a\":","id":"mine"}],
      "usage":{"input":7,"cached":5},"latency_ms":3}})");
  rng random{1};
  auto drawn = s.answer(asked("t"), random);
  REQUIRE(drawn.reply);
  CHECK(drawn.latency == 3ms);
  auto& reply = *drawn.reply;
  CHECK(reply.finish_reason == "tool_calls");
  CHECK(reply.reasoning == "hm");
  REQUIRE(reply.tool_calls.size() == 2);
  CHECK(reply.tool_calls[0].id.starts_with("call_"));
  CHECK(reply.tool_calls[0].arguments == R"({"a":1})");
  CHECK(reply.tool_calls[1] == tool_call_message{"mine", "raw", "{\"a\":", ""});
  CHECK(reply.usage.input == 7);
  CHECK(reply.usage.cached == 5);
  CHECK(reply.usage.output == (2 + 3 + 7 + 3 + 5) / 4);  // reasoning, names, arguments
  auto second = s.answer(asked("t", 1), random);
  REQUIRE(second.reply);
  CHECK(second.latency == 50ms);
  CHECK(second.reply->finish_reason == "length");
}

TEST_CASE("a scripted reply may be a failure", "[mock]") {
  auto s = script_of(R"({"conversations":[{"task":"t","replies":[
    {"failure":{"kind":"overloaded","retry_after_ms":70}},"then"]}]})");
  rng random{1};
  auto drawn = s.answer(asked("t"), random);
  REQUIRE(!drawn.reply);
  CHECK(drawn.reply.error().kind == failure_class::overloaded);
  CHECK(drawn.reply.error().retry_after == 70ms);
  CHECK(text_of(s, asked("t", 1)) == "then");
}

TEST_CASE("a reply carries model, end and usage by bytes", "[mock]") {
  rng random{1};
  auto request = asked("t");
  auto reply = script_of(R"({"default":"12345678"})").answer(request, random).reply;
  REQUIRE(reply);
  CHECK(reply->model == "scripted");
  CHECK(reply->finish_reason == "stop");
  CHECK(reply->usage.input == request.messages.size / 4);
  CHECK(reply->usage.output == 2);
}

TEST_CASE("latency is the median when sigma is zero, and capped", "[mock]") {
  rng random{1};
  auto before = random;
  CHECK(latency_model{.median = 50ms}.draw(random) == 50ms);
  CHECK(latency_model{.median = 50ms, .cap = 20ms}.draw(random) == 20ms);
  CHECK(random.next() == before.next());
}

TEST_CASE("latency is log-normal around its median", "[mock]") {
  rng random{42};
  latency_model model{.median = 100ms, .sigma = 0.5, .cap = 10s};
  std::vector<double> logs;
  constexpr int n = 20'000;
  for (int i = 0; i < n; ++i)
    logs.push_back(std::log(static_cast<double>(model.draw(random).count())));
  double mean = 0;
  double square = 0;
  for (auto x : logs)
    mean += x / n;
  for (auto x : logs)
    square += (x - mean) * (x - mean) / n;
  CHECK(std::abs(mean - std::log(100'000.0)) < 0.02);
  CHECK(std::abs(std::sqrt(square) - 0.5) < 0.02);
  model.cap = 120ms;
  for (int i = 0; i < 1000; ++i)
    CHECK(model.draw(random) <= 120ms);
}

TEST_CASE("failures come at their rate, of their kind, with their wait", "[mock]") {
  auto s = script_of(R"({"failures":{"rate":0.25,"kind":"rate_limited","retry_after_ms":100},
    "default":"x"})");
  rng random{42};
  auto request = asked("t");
  int failed = 0;
  for (int i = 0; i < 4000; ++i) {
    auto drawn = s.answer(request, random);
    if (drawn.reply)
      continue;
    ++failed;
    REQUIRE(drawn.reply.error().kind == failure_class::rate_limited);
    REQUIRE(drawn.reply.error().retry_after == 100ms);
  }
  CHECK(failed > 880);  // 1000, with a standard deviation of 27
  CHECK(failed < 1120);
}

TEST_CASE("the same script, request and random state give the same answer", "[mock]") {
  auto s = script_of(R"({"latency":{"median_ms":10,"sigma":1},"failures":{"rate":0.5},
    "default":"x"})");
  rng a{5};
  rng b{5};
  auto request = asked("t");
  for (int i = 0; i < 100; ++i) {
    auto x = s.answer(request, a);
    auto y = s.answer(request, b);
    CHECK(x.latency == y.latency);
    CHECK(x.reply.has_value() == y.reply.has_value());
  }
}

TEST_CASE("a repeating script ends with its last reply", "[mock]") {
  auto s = mock_script::repeating("more", 2, "done");
  CHECK(text_of(s, asked("t", 0)) == "more");
  CHECK(text_of(s, asked("t", 1)) == "more");
  CHECK(text_of(s, asked("t", 2)) == "done");
  CHECK(text_of(s, asked("t", 9)) == "done");
}

TEST_CASE("a broken script says where, what, and the nearest key", "[mock]") {
  has(error_of(R"({"latencie":{}})"), "latencie: unknown key (did you mean 'latency'?)");
  has(error_of(R"({"latency":{"median":5}})"), "latency.median: unknown key");
  has(error_of(R"({"latency":{"median_ms":"5"}})"), "latency.median_ms: expected a number");
  has(error_of(R"({"latency":5})"), "latency: expected an object");
  has(error_of(R"({"failures":{"rate":1.5}})"), "failures.rate: expected a number from 0");
  has(error_of(R"({"failures":{"kind":"rate_limit"}})"), "did you mean 'rate_limited'?");
  has(error_of(R"({"conversations":{}})"), "conversations: expected an array");
  has(error_of(R"({"conversations":[{"task":"a","replies":[]},{"task":1,"replies":[]}]})"),
      "conversations[1].task: expected a string");
  has(error_of(R"({"conversations":[{"task":"a"}]})"), "conversations[0].replies: is missing");
  has(error_of(R"({"conversations":[{"task":"a","replies":["x",2]}]})"),
      "conversations[0].replies[1]: expected a string");
  has(error_of(R"({"conversations":[{"task":"a","replies":[]},{"task":"a","replies":[]}]})"),
      "conversations[1].task: an earlier conversation has the same task");
  has(error_of(R"({"rules":[{"reply":"x"},{"if_last_contains":"y"}]})"),
      "rules[1].reply: is missing");
  has(error_of(R"({"rules":[{"reply":"x","from_turn":-1}]})"), "rules[0].from_turn");
  has(error_of(R"({"default":7})"), "default: expected a string");
  has(error_of("[]"), "the script: expected an object");
  has(error_of(R"({"default":{"txt":"x"}})"), "default.txt: unknown key (did you mean 'text'?)");
  has(error_of(R"({"default":{"tool_calls":[{"arguments":{}}]}})"),
      "default.tool_calls[0].name: is missing");
  has(error_of(R"({"default":{"tool_calls":[{"name":"f","arguments":[1]}]}})"),
      "default.tool_calls[0].arguments: expected an object, or a string");
  has(error_of(R"({"default":{"usage":{"input":-1}}})"), "default.usage.input: expected a whole");
  has(error_of(R"({"rules":[{"reply":{"failure":{"kind":"overload"}}}]})"),
      "rules[0].reply.failure.kind: no failure is called 'overload' (did you mean 'overloaded'?)");
  has(error_of(R"({"faults":[{"kind":"stal"}]})"),
      "faults[0].kind: no fault is called 'stal' (did you mean 'stall'?)");
  has(error_of(R"({"faults":[{"rate":2,"kind":"cut"}]})"), "faults[0].rate: expected a number");
  has(error_of(R"({"limits":{"requests":5}})"), "limits.requests: unknown key");
  has(error_of(R"({"stream":{"chunk_bytes":0}})"), "stream.chunk_bytes: expected a number from 4");
  has(error_of(R"({"models":[1]})"), "models[0]: expected a string");
}

TEST_CASE("a script that is not JSON is corrupt, with line and column", "[mock]") {
  auto script = mock_script::parse("{\n  \"default\": x}");
  REQUIRE(!script);
  CHECK(script.error().code == errc::corrupt);
  has(script.error().detail, "line 2");
}

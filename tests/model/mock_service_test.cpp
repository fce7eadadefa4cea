#include "runtime/model/mock_script.hpp"
#include "runtime/model/mock_service.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>
#include <set>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{};
constexpr std::string_view hello = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
constexpr std::string_view hello_streamed =
  R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})";

/// A service that is asked at a time of the test's choosing.
class asked {
public:
  explicit asked(std::string_view script, mock_service_settings settings = {})
    : service_{parsed(script), settings, {start, 0}} {}

  mock_answer post(std::string_view target, std::string_view body = hello) {
    return service_.bytes_of(take("POST", target, body));
  }

  mock_turn take(std::string_view method, std::string_view target, std::string_view body) {
    return service_.take({method, target, headers, body}, {now, 0}, in_flight);
  }

  mock_answer get(std::string_view target) { return service_.bytes_of(take("GET", target, "")); }

  header_list headers{};
  time_point now = start;
  std::uint64_t in_flight = 0;

private:
  static mock_script parsed(std::string_view text) {
    auto script = mock_script::parse(text);
    INFO((script ? std::string{} : script.error().detail));
    REQUIRE(script);
    return *script;
  }

  mock_service service_;
};

json body_of(const mock_answer& a) {
  REQUIRE(a.pieces.size() == 1);
  auto parsed = json::parse(a.pieces[0].bytes, nullptr, false);
  INFO(a.pieces[0].bytes);
  REQUIRE(!parsed.is_discarded());
  return parsed;
}

std::string header(const mock_answer& a, std::string_view name) {
  for (auto& [key, value] : a.headers)
    if (key == name)
      return value;
  return "(none)";
}

std::string text_of(const mock_answer& a) {
  return body_of(a)["choices"][0]["message"]["content"];
}

}  // namespace

TEST_CASE("resources are found below the bases that users write", "[mock_service]") {
  asked s{R"({"default":"x"})"};
  for (auto* path : {"/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions",
                     "/v1beta/openai/chat/completions", "/api/v1/chat/completions?x=1",
                     "/openai/deployments/gpt/chat/completions?api-version=1"}) {
    INFO(path);
    CHECK(text_of(s.post(path)) == "x");
  }
  CHECK(body_of(s.post("/v1/responses", R"({"model":"m","input":"hi"})"))["object"] == "response");
  CHECK(body_of(s.post("/v1/messages", R"({"model":"m","max_tokens":9,"messages":
    [{"role":"user","content":"hi"}]})"))["type"]
        == "message");
  for (auto* path : {"/", "/v1", "/v1/v1/chat/completions", "/v1/chat", "/v1/completions"}) {
    INFO(path);
    auto unknown = s.post(path);
    CHECK(unknown.status == 404);
    CHECK(body_of(unknown)["error"]["type"] == "invalid_request_error");
  }
  CHECK(s.get("/v1/chat/completions").status == 405);
}

TEST_CASE("an error has the shape of the provider whose client asked", "[mock_service]") {
  asked s{"{}"};
  s.headers = {{"x-api-key", "k"}, {"anthropic-version", "2023-06-01"}};
  auto unknown = s.post("/v1/other");
  CHECK(unknown.status == 404);
  CHECK(body_of(unknown)["error"]["type"] == "not_found_error");
  CHECK(body_of(unknown)["request_id"] == header(unknown, "request-id"));
  auto bad = s.post("/v1/messages", "{\"model\":");
  CHECK(bad.status == 400);
  CHECK(body_of(bad)["error"]["type"] == "invalid_request_error");
  s.headers.clear();
  for (auto* body : {"{\"model\":", "[]", "", "7"}) {
    auto openai = s.post("/v1/chat/completions", body);
    CHECK(openai.status == 400);
    CHECK(body_of(openai)["error"]["message"].get<std::string>().find("could not parse")
          != std::string::npos);
  }
  auto deep = std::string(5000, '[') + std::string(5000, ']');
  CHECK(s.post("/v1/chat/completions", deep).status == 400);
}

TEST_CASE("a key is demanded only if that was asked for, and never repeated", "[mock_service]") {
  asked open{R"({"default":"x"})"};
  CHECK(open.post("/v1/chat/completions").status == 200);
  asked closed{R"({"default":"x"})", {.require_key = true}};
  auto refused = closed.post("/v1/chat/completions");
  CHECK(refused.status == 401);
  CHECK(closed.get("/v1/models").status == 401);
  for (header_list key : {header_list{{"authorization", "Bearer sk-1"}},
                          header_list{{"x-api-key", "sk-1"}}, header_list{{"api-key", "sk-1"}}}) {
    closed.headers = key;
    CHECK(closed.post("/v1/chat/completions").status == 200);
  }
  closed.headers = {{"authorization", "Bearer "}};
  CHECK(closed.post("/v1/chat/completions").status == 401);
}

TEST_CASE("models are those of the script, or any", "[mock_service]") {
  asked any{"{}"};
  CHECK(body_of(any.get("/v1/models"))["data"].size() == 1);
  CHECK(any.get("/v1/models/whatever").status == 200);
  asked two{R"({"models":["a","b/c"],"default":"x"})"};
  CHECK(body_of(two.get("/v1/models"))["data"][1]["id"] == "b/c");
  CHECK(body_of(two.get("/v1/models/b/c"))["object"] == "model");
  CHECK(two.get("/v1/models/d").status == 404);
  auto missing = two.post("/v1/chat/completions");
  CHECK(missing.status == 404);
  CHECK(body_of(missing)["error"]["code"] == "model_not_found");
}

TEST_CASE("the script answers as it answers the mock/ provider", "[mock_service]") {
  asked s{R"({"conversations":[{"task":"add","replies":["first",
      {"tool_calls":[{"name":"f","arguments":{"a":1}}]}]}],
    "rules":[{"if_last_contains":"Error","reply":"again"},{"if_model":"other","reply":"not m"}],
    "default":"none"})"};
  auto said = [&](std::string_view messages, std::string_view model = "m") {
    return s.post("/v1/chat/completions", R"({"model":")" + std::string{model} + R"(","messages":[)"
                                            + std::string{messages} + "]}");
  };
  CHECK(text_of(said(R"({"role":"user","content":"New task:\nadd"})")) == "first");
  auto second = said(R"({"role":"user","content":"add"},{"role":"assistant","content":"first"},
                        {"role":"user","content":"Error"})");
  auto message = body_of(second)["choices"][0];
  CHECK(message["finish_reason"] == "tool_calls");
  CHECK(message["message"]["content"].is_null());
  CHECK(message["message"]["tool_calls"][0]["function"]["arguments"] == R"({"a":1})");
  CHECK(text_of(said(R"({"role":"user","content":"an Error"})")) == "again");
  CHECK(text_of(said(R"({"role":"user","content":"hi"})")) == "none");
  CHECK(text_of(said(R"({"role":"user","content":"hi"})", "other")) == "not m");
}

TEST_CASE("a reply ends at a stop sequence, and at the limit on tokens", "[mock_service]") {
  asked s{R"({"default":"one two three"})"};
  auto stopped = body_of(s.post("/v1/chat/completions", R"({"model":"m","stop":[" three"," two"],
    "messages":[{"role":"user","content":"hi"}]})"));
  CHECK(stopped["choices"][0]["message"]["content"] == "one");
  CHECK(stopped["choices"][0]["finish_reason"] == "stop");
  auto cut = body_of(s.post("/v1/messages", R"({"model":"m","max_tokens":2,
    "stop_sequences":["four"],"messages":[{"role":"user","content":"hi"}]})"));
  CHECK(cut["content"][0]["text"] == "one two ");
  CHECK(cut["stop_reason"] == "max_tokens");
  CHECK(cut["stop_sequence"].is_null());
}

TEST_CASE("usage is counted, or the script's own", "[mock_service]") {
  asked s{R"({"rules":[{"if_task_contains":"count","reply":{"text":"12345678",
    "usage":{"input":1000,"output":50,"cached":800,"reasoning":20}}}],"default":"12345678"})"};
  auto counted = body_of(s.post("/v1/chat/completions"))["usage"];
  CHECK(counted["prompt_tokens"] == hello.size() / 4);
  CHECK(counted["completion_tokens"] == 2);
  auto given = body_of(s.post("/v1/responses", R"({"model":"m","input":"count"})"))["usage"];
  CHECK(given["input_tokens"] == 1000);
  CHECK(given["input_tokens_details"]["cached_tokens"] == 800);
  CHECK(given["output_tokens_details"]["reasoning_tokens"] == 20);
  CHECK(given["total_tokens"] == 1050);
}

TEST_CASE("ids are unique, in replies, calls and requests", "[mock_service]") {
  asked s{R"({"default":{"text":"x","tool_calls":[{"name":"f"},{"name":"g"}]}})"};
  std::set<std::string> ids;
  constexpr std::size_t n = 500;
  for (std::size_t i = 0; i < n; ++i) {
    auto answer = s.post("/v1/chat/completions");
    auto body = body_of(answer);
    ids.insert(body["id"].get<std::string>());
    ids.insert(header(answer, "x-request-id"));
    for (auto& call : body["choices"][0]["message"]["tool_calls"])
      ids.insert(call["id"].get<std::string>());
  }
  CHECK(ids.size() == 4 * n);
  auto use = body_of(s.post("/v1/messages", R"({"model":"m","max_tokens":99,"messages":
    [{"role":"user","content":"hi"}]})"))["content"][1];
  CHECK(use["id"].get<std::string>().starts_with("toolu_"));
}

TEST_CASE("the Responses API goes on from a reply by its id", "[mock_service]") {
  asked s{R"({"conversations":[{"task":"add","replies":["first","second"]}],"default":"none"})"};
  auto text = [](const json& r) { return r["output"][0]["content"][0]["text"]; };
  auto first = body_of(s.post("/v1/responses", R"({"model":"m","input":"add"})"));
  CHECK(text(first) == "first");
  json next{{"model", "m"}, {"input", "go on"}, {"previous_response_id", first["id"]}};
  auto second = body_of(s.post("/v1/responses", next.dump()));
  CHECK(text(second) == "second");
  next["previous_response_id"] = second["id"];
  CHECK(text(body_of(s.post("/v1/responses", next.dump()))) == "none");
  next["previous_response_id"] = "resp_unknown";
  auto unknown = s.post("/v1/responses", next.dump());
  CHECK(unknown.status == 400);
  CHECK(body_of(unknown)["error"]["code"] == "previous_response_not_found");
}

TEST_CASE("what is remembered of conversations has a bound", "[mock_service]") {
  mock_past past{10'000};
  for (int i = 0; i < 100; ++i)
    past.keep("resp_" + std::to_string(i), {std::string(1000, 'x'), 1});
  CHECK(!past.find("resp_0"));
  CHECK(past.find("resp_99")->task.size() == 1000);
  past.keep("huge", {std::string(20'000, 'x'), 1});
  CHECK(!past.find("huge"));
  CHECK(past.find("resp_99"));
}

TEST_CASE("a request beyond the limit gets a 429 with the provider's words and waits",
          "[mock_service]") {
  asked s{R"({"limits":{"requests_per_minute":60,"burst_ms":1000},"default":"x",
    "latency":{"median_ms":500}})"};
  auto good = s.post("/v1/chat/completions");
  CHECK(header(good, "x-ratelimit-limit-requests") == "60");
  CHECK(header(good, "x-ratelimit-remaining-requests") == "0");
  auto turn = s.take("POST", "/v1/chat/completions", hello);
  CHECK(turn.limited);
  CHECK(turn.latency == 0us);
  auto denied = s.post("/v1/chat/completions");
  CHECK(denied.status == 429);
  CHECK(header(denied, "retry-after") == "1");
  CHECK(header(denied, "retry-after-ms") == "1000");
  CHECK(header(denied, "x-ratelimit-reset-requests") == "1s");
  CHECK(body_of(denied)["error"]["code"] == "rate_limit_exceeded");
  auto anthropic = s.post("/v1/messages", R"({"model":"m","max_tokens":9,"messages":
    [{"role":"user","content":"hi"}]})");
  CHECK(anthropic.status == 429);
  CHECK(header(anthropic, "anthropic-ratelimit-requests-limit") == "60");
  CHECK(header(anthropic, "anthropic-ratelimit-requests-reset") == "1970-01-01T00:00:01Z");
  CHECK(body_of(anthropic)["error"]["type"] == "rate_limit_error");
  s.now += 1s;
  CHECK(s.post("/v1/chat/completions").status == 200);
}

TEST_CASE("a failure of the script is one of HTTP", "[mock_service]") {
  struct row {
    const char* kind;
    unsigned status;
  };
  for (auto [kind, status] :
       {row{"rate_limited", 429}, row{"overloaded", 503}, row{"server", 500}, row{"quota", 429},
        row{"auth", 401}, row{"bad_request", 400}, row{"context_length", 400}}) {
    INFO(kind);
    asked s{R"({"default":{"failure":{"kind":")" + std::string{kind}
            + R"(","retry_after_ms":1500}}})"};
    auto failed = s.post("/v1/chat/completions");
    CHECK(failed.status == status);
    CHECK(header(failed, "retry-after") == "2");
    CHECK(header(failed, "retry-after-ms") == "1500");
    CHECK(body_of(failed).contains("error"));
  }
  asked reset{R"({"default":{"failure":{"kind":"connect"}}})"};
  auto none = reset.post("/v1/chat/completions");
  CHECK(none.no_answer);
  CHECK(none.end == mock_answer::ending::reset);
}

TEST_CASE("faults strike whole replies and streams", "[mock_service]") {
  auto with = [](std::string_view kind, std::string_view body) {
    return asked{R"({"default":"x","faults":[{"kind":")" + std::string{kind}
                 + R"(","at":0.5,"pause_ms":30}]})"}
      .post("/v1/chat/completions", body);
  };
  auto truncated = with("truncated", hello);
  CHECK(truncated.status == 200);
  CHECK(json::parse(truncated.pieces[0].bytes, nullptr, false).is_discarded());
  CHECK(with("gateway", hello).status == 502);
  CHECK(header(with("wrong_type", hello), "content-type") == "text/html; charset=utf-8");
  CHECK(with("server", hello_streamed).status == 500);
  CHECK(with("error_event", hello).status == 500);
  auto event = with("error_event", hello_streamed);
  CHECK(event.status == 200);
  CHECK(event.pieces.back().bytes.find("\"error\"") != std::string::npos);
  CHECK(event.pieces.back().bytes.find("[DONE]") == std::string::npos);
  CHECK(with("stall", hello_streamed).pieces.back().wait == 30ms);
  CHECK(with("cut", hello_streamed).end == mock_answer::ending::cut);
}

TEST_CASE("a stream's events leave together unless there is a gap between them", "[mock_service]") {
  asked together{R"({"default":"a text of some thirty characters"})"};
  auto joined = together.post("/v1/chat/completions", hello_streamed);
  CHECK(joined.pieces.size() == 1);
  CHECK(header(joined, "content-type") == "text/event-stream; charset=utf-8");
  asked apart{R"({"default":"a text of some thirty characters",
    "stream":{"chunk_bytes":8,"gap":{"median_ms":10}}})"};
  auto timed = apart.post("/v1/chat/completions", hello_streamed);
  REQUIRE(timed.pieces.size() == 7);  // role, four of text, end, [DONE]
  CHECK(timed.pieces[0].wait == 0us);
  CHECK(timed.pieces[1].wait == 10ms);
}

TEST_CASE("the same requests in the same order meet the same fate", "[mock_service]") {
  auto fates = [](std::uint64_t seed) {
    asked s{R"({"latency":{"median_ms":100,"sigma":1},"failures":{"rate":0.2},"default":"x",
      "faults":[{"kind":"cut","rate":0.2},{"kind":"overloaded","rate":0.2}]})",
            {.seed = seed}};
    std::vector<std::string> out;
    for (int i = 0; i < 200; ++i) {
      auto turn = s.take("POST", "/v1/chat/completions", hello);
      out.push_back(std::to_string(turn.latency.count()) + " " + std::to_string(turn.status) + " "
                    + (turn.fault ? std::string{to_string(turn.fault->kind)} : "-") + " "
                    + turn.headers[1].second);
    }
    return out;
  };
  CHECK(fates(7) == fates(7));
  CHECK(fates(7) != fates(8));
}

// Error bodies in the shapes that the named servers send.
#include "runtime/model/codec.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;
using enum failure_class;

namespace {

model_failure classify(unsigned status, std::string_view body, const header_list& headers = {}) {
  auto f = openai_codec().classify(status, headers, body);
  CHECK(f.detail.find('\n') == std::string::npos);
  CHECK(f.detail.size() < 700);
  return f;
}

bool has(const model_failure& f, std::string_view part) {
  INFO(f.detail);
  CHECK(f.detail.find(part) != std::string::npos);
  return f.detail.find(part) != std::string::npos;
}

constexpr std::string_view openai_rate = R"json({
    "error": {
        "message": "Rate limit reached for gpt-4.1 in organization org-x on tokens per min (TPM)",
        "type": "tokens",
        "param": null,
        "code": "rate_limit_exceeded"
    }
})json";

}  // namespace

TEST_CASE("each status has its class", "[openai]") {
  struct row {
    unsigned status;
    failure_class kind;
  };
  for (auto [status, kind] :
       {row{400, bad_request},  row{401, auth},        row{402, quota},
        row{403, auth},         row{404, bad_request}, row{405, bad_request},
        row{408, server},       row{409, server},      row{413, context_length},
        row{418, bad_request},  row{422, bad_request}, row{425, server},
        row{429, rate_limited}, row{500, server},      row{502, server},
        row{503, overloaded},   row{504, server},      row{520, server},
        row{529, overloaded},   row{301, bad_request}, row{199, unknown},
        row{600, unknown},      row{0, unknown}}) {
    auto f = classify(status, "");
    CHECK(f.kind == kind);
    has(f, "HTTP " + std::to_string(status));
  }
}

TEST_CASE("the server's words and code are in the message", "[openai]") {
  auto f = classify(429, openai_rate);
  CHECK(f.kind == rate_limited);
  has(f, "Rate limit reached for gpt-4.1");
  has(f, "(rate_limit_exceeded)");
  CHECK(!f.retry_after);
}

TEST_CASE("an account without money is told apart from a rate limit", "[openai]") {
  auto f = classify(429, R"({"error":{"message":"You exceeded your current quota",
    "type":"insufficient_quota","param":null,"code":"insufficient_quota"}})");
  CHECK(f.kind == quota);
  has(f, "plan and billing");
  CHECK(classify(429, R"({"error":{"message":"x","type":"insufficient_quota"}})").kind == quota);
  CHECK(classify(402, R"({"error":{"message":"Insufficient credits","code":402}})").kind == quota);
}

TEST_CASE("refused keys, models and URLs name what to check", "[openai]") {
  has(classify(401, R"({"error":{"message":"Incorrect API key provided: sk-x.",
    "type":"invalid_request_error","code":"invalid_api_key"}})"),
      "check the API key");
  has(classify(403, "{}"), "may use this model");
  has(classify(404, R"({"error":{"message":"The model `x` does not exist",
    "code":"model_not_found"}})"),
      "check the model name and the base URL");
  has(classify(404, "404 page not found"), "404 page not found");
  has(classify(413, ""), "too large");
  has(classify(308, "", {{"location", "https://b.example/v1"}}), "https://b.example/v1");
}

TEST_CASE("a prompt that is too long is told apart from other bad requests", "[openai]") {
  // Source: the servers' own words: OpenAI, Anthropic (two), llama.cpp, vLLM, Gemini.
  for (auto* body :
       {R"({"error":{"message":"m","type":"invalid_request_error","param":"messages",
          "code":"context_length_exceeded"}})",
        R"({"type":"error","error":{"type":"invalid_request_error",
          "message":"prompt is too long: 208310 tokens > 200000 maximum"}})",
        R"({"type":"error","error":{"type":"invalid_request_error","message":
          "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}})",
        R"({"error":{"code":400,"message":"the request exceeds the available context size, try )"
        R"(increasing it","type":"exceed_context_size_error","n_prompt_tokens":5,"n_ctx":4}})",
        R"({"object":"error","message":"This model's maximum context length is 8192 tokens. )"
        R"(However, you requested 9000 tokens","type":"BadRequestError","code":400})",
        R"([{"error":{"code":400,"message":"The input token count (1200000) exceeds the )"
        R"(maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}])"}) {
    auto f = classify(400, body);
    CHECK(f.kind == context_length);
    has(f, "; the request is too large: shorten the context");
  }
  CHECK(classify(429, R"({"error":{"message":"maximum context length"}})").kind == rate_limited);
}

TEST_CASE("a refused schema, and a page of something in between, say what to do", "[openai]") {
  // Source: OpenAI, "Structured model outputs", the error for an object without the member.
  auto schema =
    classify(400, R"({"error":{"message":"Invalid schema for response_format 'answer': )"
                  R"(In context=(), 'additionalProperties' is required to be supplied )"
                  R"(and to be false.","param":"response_format","code":null}})");
  CHECK(schema.kind == bad_request);
  has(schema, "'additionalProperties' is required");
  has(schema, "; change the schema: ");
  auto page = classify(502, "<html><h1>Bad Gateway</h1></html>");
  CHECK(page.kind == server);
  has(page, "Bad Gateway");
  has(page, "; not the model but something before it answers: check the base URL and the proxy");
}

TEST_CASE("error bodies of other shapes are read too", "[openai]") {
  // Gemini: an array
  auto f = classify(400, R"([{"error":{"code":400,"message":"Bad part","status":"INVALID"}}])");
  has(f, "Bad part");
  CHECK(f.kind == bad_request);
  // llama.cpp: a number as code
  has(classify(503, R"({"error":{"code":503,"message":"Loading model",
    "type":"unavailable_error"}})"),
      "Loading model");
  // Ollama: a string; FastAPI: detail; vLLM before 0.10: top level
  has(classify(404, R"({"error":"model 'x' not found"})"), "model 'x' not found");
  has(classify(422, R"({"detail":[{"loc":["body"],"msg":"field required"}]})"), "field required");
  has(classify(400, R"({"detail":"nope"})"), "nope");
  has(classify(400, R"({"object":"error","message":"too long","code":400})"), "too long");
  has(classify(500, R"({"error":{"odd":1}})"), "{\"odd\":1}");
  has(classify(500, "[]"), "[]");
  has(classify(502, "<html>\n<title>502 Bad Gateway</title>"), "502 Bad Gateway");
  has(classify(500, " \n "), "no explanation");
  has(classify(500, "plain\r\nwords"), "plain words");
  has(classify(500, std::string(10'000, 'x')), "...");
  has(classify(500, "\xff\xfe"), "\xEF\xBF\xBD");
}

TEST_CASE("the server's wait is taken from its headers", "[openai]") {
  CHECK(classify(429, "", {{"retry-after-ms", "1500.2"}, {"retry-after", "9"}}).retry_after
        == 1501ms);
  CHECK(classify(503, "", {{"retry-after", "9"}}).retry_after == 9s);
}

TEST_CASE("x-should-retry is the last word", "[openai]") {
  auto f = classify(500, "", {{"x-should-retry", "false"}});
  CHECK(!is_transient(f.kind));
  has(f, "asks not to retry");
  CHECK(is_transient(classify(400, "", {{"x-should-retry", "true"}}).kind));
  CHECK(classify(429, "", {{"x-should-retry", "true"}}).kind == rate_limited);
  CHECK(classify(401, "", {{"x-should-retry", "false"}}).kind == auth);
}

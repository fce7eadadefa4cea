// The HTTP endpoint over real sockets: what each wire format sends, and what comes of the answers.
#include "actors/endpoint.hpp"
#include "tests/net/http_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdio>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view chat_stream =
  "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"caf\xC3\xA9 \"}}]}\r\n\r\n"
  "data: {\"choices\":[{\"delta\":{\"content\":\"\xF0\x9F\x98\x80\"},\"finish_reason\":\"stop\"}]}"
  "\r\n\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\r\n\r\n"
  "data: [DONE]\r\n\r\n";
constexpr std::string_view chat_whole =
  "{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"caf\xC3\xA9 \xF0\x9F\x98\x80\"},"
  "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}";

std::string sized(std::string_view body, std::string_view type = "application/json",
                  std::string_view status = "200 OK") {
  return "HTTP/1.1 " + std::string{status} + "\r\ncontent-type: " + std::string{type}
         + "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}

std::string chunk(std::string_view text) {
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
  return size.data() + std::string{text} + "\r\n";
}

constexpr std::string_view stream_head =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server with one answer for every request, and an endpoint that asks it.
class asked_server {
public:
  explicit asked_server(std::function<void(raw_server::peer&)> answer,
                        const codec_options& format = {}, millis silence = millis{30'000})
    : server_{[this, answer = std::move(answer)](raw_server::peer& p, int) {
        auto got = p.read_request();
        {
          std::lock_guard lock{mutex_};
          request_ = std::move(got);
        }
        answer(p);
      }},
      client_{io_, {}},
      endpoint_{make_http_endpoint(
        client_, make_codec(format),
        {.base = {"http", "127.0.0.1", server_.port(), "/v1"}, .key = "k", .silence = silence})} {}

  explicit asked_server(std::string answer, const codec_options& format = {})
    : asked_server{[answer = std::move(answer)](raw_server::peer& p) {
                     p.send(answer);
                     p.drain();
                   },
                   format} {}

  model_outcome ask(bool streamed) {
    transcript t{endpoint_->encoder()};
    t.append({.from = role::system, .content = "Be brief."});
    t.append({.from = role::user, .content = "hi"});
    model_request q;
    q.settings = std::make_shared<model_settings>(model_settings{.model = "m"});
    q.messages = t.view();
    std::promise<model_outcome> outcome;
    endpoint::seen_fn seen;
    if (streamed)
      seen = [this](std::vector<model_delta> pieces) {
        std::lock_guard lock{mutex_};
        for (auto& p : pieces)
          text_ += p.text;
      };
    endpoint_->ask(q, soon(patience), seen,
                   [&](model_outcome o) { outcome.set_value(std::move(o)); });
    auto future = outcome.get_future();
    REQUIRE(future.wait_for(patience) == std::future_status::ready);
    return future.get();
  }

  std::string text() {
    std::lock_guard lock{mutex_};
    return text_;
  }

  std::string request() {
    std::lock_guard lock{mutex_};
    return request_;
  }

private:
  std::mutex mutex_;
  std::string request_;
  std::string text_;
  reactor io_;
  raw_server server_;
  http_client client_;
  std::shared_ptr<endpoint> endpoint_;
};

model_failure failure_of(const model_outcome& o) {
  REQUIRE(!o);
  return o.error();
}

}  // namespace

TEST_CASE("a streamed reply over a socket is the plain one's value, wherever packets end",
          "[endpoint]") {
  asked_server plain{sized(chat_whole)};
  auto whole = plain.ask(false);
  REQUIRE(whole);
  CHECK(contains(plain.request(), "accept: application/json\r\n"));
  CHECK(!contains(plain.request(), "\"stream\""));

  for (std::size_t size : {1, 5, 4096}) {
    asked_server s{[size](raw_server::peer& p) {
      p.send(stream_head);
      for (auto rest = chat_stream; !rest.empty(); rest.remove_prefix(std::min(size, rest.size())))
        p.send(chunk(rest.substr(0, size)));
      p.send("0\r\n\r\n");
      p.drain();
    }};
    auto streamed = s.ask(true);
    REQUIRE(streamed);
    CHECK(*streamed == *whole);
    CHECK(s.text() == whole->text);
    CHECK(contains(s.request(), "accept: text/event-stream\r\n"));
    CHECK(contains(s.request(), "\"stream\":true"));
  }
}

TEST_CASE("each wire format has its path and its key", "[endpoint]") {
  asked_server chat{sized(chat_whole)};
  CHECK(chat.ask(false));
  CHECK(chat.request().starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
  CHECK(contains(chat.request(), "authorization: Bearer k\r\n"));

  asked_server responses{
    sized(R"({"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]})"),
    {.wire = wire_format::openai_responses}};
  CHECK(responses.ask(false)->text == "x");
  CHECK(responses.request().starts_with("POST /v1/responses HTTP/1.1\r\n"));

  asked_server messages{sized(R"({"content":[{"type":"text","text":"x"}]})"),
                        {.wire = wire_format::anthropic}};
  CHECK(messages.ask(false)->text == "x");
  CHECK(messages.request().starts_with("POST /v1/messages HTTP/1.1\r\n"));
  CHECK(contains(messages.request(), "x-api-key: k\r\n"));
  CHECK(contains(messages.request(), "anthropic-version: 2023-06-01\r\n"));
  CHECK(contains(messages.request(), "\"system\":[{\"type\":\"text\",\"text\":\"Be brief.\"}]"));

  asked_server azure{sized(chat_whole), {.azure = true, .version = "2024-10-21"}};
  CHECK(azure.ask(false));
  CHECK(azure.request().starts_with(
    "POST /v1/openai/deployments/m/chat/completions?api-version=2024-10-21 HTTP/1.1\r\n"));
  CHECK(contains(azure.request(), "api-key: k\r\n"));
}

TEST_CASE("a reply is there at [DONE], though the server keeps the line open", "[endpoint]") {
  asked_server s{[](raw_server::peer& p) {
    p.send(std::string{stream_head} + chunk(chat_stream));
    p.drain();
  }};
  CHECK(s.ask(true)->usage.output == 2);
}

TEST_CASE("a stream that stalls is a timeout, one that breaks off a lost connection",
          "[endpoint]") {
  auto half = std::string{stream_head} + chunk(chat_stream.substr(0, 90));
  asked_server stalls{[half](raw_server::peer& p) {
                        p.send(half);
                        p.drain();
                      },
                      {},
                      50ms};
  auto f = failure_of(stalls.ask(true));
  CHECK(f.kind == failure_class::timeout);
  CHECK(contains(f.detail, "nothing came for 50 ms"));
  CHECK(stalls.text() == "caf\xC3\xA9 ");

  asked_server breaks{[half](raw_server::peer& p) { p.send(half); }};
  CHECK(failure_of(breaks.ask(true)).kind == failure_class::connect);

  asked_server ends_early{std::string{half + "0\r\n\r\n"}};
  CHECK(failure_of(ends_early.ask(true)).kind == failure_class::bad_reply);
}

TEST_CASE("a connection that breaks behind the finish reason costs nothing", "[endpoint]") {
  auto until_usage = chat_stream.substr(0, chat_stream.find("data: {\"choices\":[],"));
  asked_server s{
    [until_usage](raw_server::peer& p) { p.send(std::string{stream_head} + chunk(until_usage)); }};
  auto r = s.ask(true);
  REQUIRE(r);
  CHECK(r->finish_reason == "stop");
}

TEST_CASE("a refused stream is classed by its status, headers and body", "[endpoint]") {
  asked_server s{"HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 33\r\n\r\n"
                 "{\"error\":{\"message\":\"slow down\"}} "};
  auto f = failure_of(s.ask(true));
  CHECK(f.kind == failure_class::rate_limited);
  CHECK(f.retry_after == 2s);
  CHECK(contains(f.detail, "HTTP 429: slow down"));
}

TEST_CASE("an answer to a streamed request may be JSON, an error in a 200, or a web page",
          "[endpoint]") {
  asked_server json_reply{sized(chat_whole, "text/plain")};
  CHECK(json_reply.ask(true)->text == "caf\xC3\xA9 \xF0\x9F\x98\x80");
  CHECK(json_reply.text() == "caf\xC3\xA9 \xF0\x9F\x98\x80");
  asked_server error{sized(R"({"error":{"code":429,"message":"later"}})", "text/event-stream")};
  CHECK(failure_of(error.ask(true)).kind == failure_class::rate_limited);
  asked_server page{sized("<!doctype html><p>login", "text/html")};
  CHECK(contains(failure_of(page.ask(true)).detail, "web page"));
  asked_server nothing{sized("", "text/event-stream")};
  CHECK(failure_of(nothing.ask(true)).kind == failure_class::bad_reply);
}

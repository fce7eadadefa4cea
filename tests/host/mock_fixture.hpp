#pragma once
// A mock server in this process and calls to it.

#include "runtime/host/mock_server.hpp"
#include "runtime/net/http.hpp"
#include "runtime/net/reactor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <future>
#include <string>
#include <string_view>

namespace troupe::test {

inline std::unique_ptr<mock_server> serve_mock(std::string_view script,
                                               mock_server_settings settings = {}) {
  auto read = mock_script::parse(script);
  INFO((read ? std::string{} : read.error().detail));
  REQUIRE(read);
  auto server = mock_server::start(*read, settings);
  INFO((server ? std::string{} : server.error().detail));
  REQUIRE(server);
  return std::move(*server);
}

inline http_request chat_request(const mock_server& server, std::string body) {
  http_request r;
  r.to = {"http", "127.0.0.1", server.port(), ""};
  r.target = "/v1/chat/completions";
  r.headers = {{"content-type", "application/json"}};
  auto owned = std::make_shared<const std::string>(std::move(body));
  r.body.emplace_back(*owned);
  r.owners.push_back(std::move(owned));
  return r;
}

/// `bytes` of text to the model, and the rest of a request around it.
inline std::string chat_body(bool stream = false, std::size_t bytes = 2) {
  return std::string{R"({"model":"m","stream":)"} + (stream ? "true" : "false")
         + R"(,"messages":[{"role":"user","content":")" + std::string(bytes, 'h') + R"("}]})";
}

using answer = tl::expected<http_response, http_failure>;

/// The answer to a call, when it is there.
inline std::future<answer> send(http_client& client, http_request request) {
  auto promise = std::make_shared<std::promise<answer>>();
  auto future = promise->get_future();
  client.send(std::move(request), never, [promise](answer a) { promise->set_value(std::move(a)); });
  return future;
}

}  // namespace troupe::test

#include "runtime/model/server_error.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/http_wait.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

std::string_view header(const header_list& headers, std::string_view name) {
  auto it = std::find_if(headers.begin(), headers.end(), [&](auto& h) { return h.first == name; });
  return it == headers.end() ? std::string_view{} : trim(it->second);
}

/// The status that a server would have sent with its error, had it not begun to answer 200.
/// Source  Anthropic API, "Errors"; OpenAI API, "Error codes".
unsigned status_of_word(std::string_view code) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 17> words{{
    {"invalid_request_error", 400},
    {"invalid_prompt", 400},
    {"context_length_exceeded", 400},
    {"authentication_error", 401},
    {"invalid_api_key", 401},
    {"billing_error", 402},
    {"permission_error", 403},
    {"not_found_error", 404},
    {"model_not_found", 404},
    {"timeout_error", 408},
    {"request_too_large", 413},
    {"rate_limit_error", 429},
    {"rate_limit_exceeded", 429},
    {"api_error", 500},
    {"server_error", 500},
    {"internal_server_error", 500},
    {"overloaded_error", 529},
  }};
  auto* it = std::find_if(words.begin(), words.end(), [&](auto& w) { return w.first == code; });
  return it == words.end() ? 0 : it->second;
}

/// A code as text, and as a status when it is one (llama.cpp, Gemini and OpenRouter send numbers).
void read_code(const json& code, server_error& out) {
  if (code.is_string())
    out.code = code.get<std::string>();
  else if (code.is_number_integer())
    out.code = dump_json(code);
}

unsigned status_of(const std::string& code) {
  if (code.size() == 3 && code[0] >= '4' && code[0] <= '5')
    return static_cast<unsigned>(std::strtoul(code.c_str(), nullptr, 10));
  return status_of_word(code);
}

bool is_out_of_money(unsigned status, const server_error& e) {
  constexpr std::array<std::string_view, 5> codes = {
    "insufficient_quota", "billing_hard_limit_reached", "insufficient_credits",
    "billing_not_active", "billing_error"};
  return status == 402 || std::find(codes.begin(), codes.end(), e.code) != codes.end();
}

std::string lower_case(std::string text) {
  for (auto& c : text)
    c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

/// What servers call a prompt that is longer than the model can read. They have no common code.
/// Source  OpenAI (code, and "maximum context length", as vLLM and Azure); Anthropic ("prompt is
/// too
///         long", "exceed context limit", request_too_large); llama.cpp
///         (exceed_context_size_error); Gemini; Ollama; Mistral; Bedrock.
bool is_too_long(unsigned status, const server_error& e) {
  constexpr std::array<std::string_view, 3> codes = {
    "context_length_exceeded", "exceed_context_size_error", "request_too_large"};
  constexpr std::array<std::string_view, 9> words = {"maximum context length",
                                                     "prompt is too long",
                                                     "exceed context limit",
                                                     "exceeds the available context size",
                                                     "exceeds the context window",
                                                     "exceeds the context length",
                                                     "context window of this model",
                                                     "exceeds the maximum number of tokens",
                                                     "input is too long for requested model"};
  if (status == 413 || std::find(codes.begin(), codes.end(), e.code) != codes.end())
    return true;
  auto text = lower_case(e.message);
  return status >= 400 && status < 500 && status != 429
         && std::any_of(words.begin(), words.end(),
                        [&](auto word) { return text.find(word) != std::string::npos; });
}

constexpr std::string_view web_page = "a web page instead of an error: ";

std::string_view mend_for(unsigned status, failure_class kind, const server_error& e) {
  if (e.message.starts_with(web_page))
    return "not the model but something before it answers: check the base URL and the proxy";
  if (kind == failure_class::quota)
    return "the account has no credit left: check its plan and billing";
  if (status == 401)
    return "check the API key: it is missing, wrong or expired";
  if (status == 403)
    return "check that the API key may use this model and endpoint";
  if (status == 404 || status == 405)
    return "check the model name and the base URL";
  if (status >= 300 && status < 400)
    return "check the base URL: redirects are not followed";
  if (kind == failure_class::context_length)
    return "the request is too large: shorten the context";
  if (status == 400 && e.message.find("schema") != std::string::npos)
    return "change the schema: each provider takes a part of JSON Schema only";
  return {};
}

/// What an HTTP status, or a server's own word for the same thing, asks of us.
failure_class class_of(unsigned status, const server_error& e) {
  if (is_out_of_money(status, e))
    return failure_class::quota;
  if (is_too_long(status, e))
    return failure_class::context_length;
  switch (status) {
  case 401:
  case 403:
    return failure_class::auth;
  case 408:
  case 409:
  case 425:
    return failure_class::server;
  case 429:
    return failure_class::rate_limited;
  case 503:
  case 529:
    return failure_class::overloaded;
  default:
    break;
  }
  if (status >= 500 && status < 600)
    return failure_class::server;
  return status >= 300 && status < 500 ? failure_class::bad_request : failure_class::unknown;
}

server_error error_of(std::string_view body) {
  auto text = trim(body);
  if (text.empty())
    return {"no explanation was sent", {}, 0};
  if (text.front() == '<')
    return {std::string{web_page} + one_line(text, 120), {}, 0};
  auto parsed = parse_json(text);
  auto e = parsed ? read_error(*parsed) : server_error{};
  if (e.message.empty())
    e.message = text;
  return e;
}

/// x-should-retry is the server's last word on whether another try may help.
failure_class heed_should_retry(failure_class kind, std::string_view word) {
  if (word == "false" && is_transient(kind))
    return failure_class::unknown;
  if (word == "true" && !is_transient(kind))
    return failure_class::server;
  return kind;
}

}  // namespace

server_error read_error(const json& body) {
  if (body.is_array())
    return body.empty() ? server_error{} : read_error(body.front());
  server_error out;
  if (!body.is_object())
    return out;
  auto holder = body.find("error");
  auto& e = holder != body.end() && holder->is_object() ? *holder : body;
  out.message = string_or(e, "message");
  if (out.message.empty() && holder != body.end() && holder->is_string())
    out.message = holder->get<std::string>();
  if (auto detail = e.find("detail"); out.message.empty() && detail != e.end())
    out.message = detail->is_string() ? detail->get<std::string>() : dump_json(*detail);
  if (out.message.empty() && holder != body.end() && !holder->is_null())
    out.message = dump_json(*holder);
  if (auto code = e.find("code"); code != e.end())
    read_code(*code, out);
  if (out.code.empty())
    out.code = string_or(e, "type");
  out.status = status_of(out.code);
  return out;
}

bool is_error(const json& body) {
  if (body.is_array())
    return !body.empty() && is_error(body.front());
  if (!body.is_object())
    return false;
  auto it = body.find("error");
  return it != body.end() && !it->is_null();
}

model_failure failure_inside(const json& holder, std::string_view where) {
  auto e = read_error(holder);
  model_failure failure;
  failure.kind = class_of(e.status, e);
  if (failure.kind == failure_class::unknown)
    failure.kind = failure_class::bad_reply;
  failure.detail = std::string{where} + ": " + one_line(e.message, 300);
  if (!e.code.empty())
    failure.detail += " (" + one_line(e.code, 60) + ")";
  return failure;
}

model_failure classify_status(unsigned status, const header_list& headers, std::string_view body) {
  auto e = error_of(body);
  model_failure failure;
  auto kind = class_of(status, e);
  failure.kind = heed_should_retry(kind, header(headers, "x-should-retry"));
  failure.retry_after = wait_asked(headers);
  failure.detail = "HTTP " + std::to_string(status) + ": " + one_line(e.message, 300);
  if (!e.code.empty() && e.code != std::to_string(status))
    failure.detail += " (" + one_line(e.code, 60) + ")";
  if (auto where = header(headers, "location"); status >= 300 && status < 400 && !where.empty())
    failure.detail += " (redirects to " + one_line(where, 120) + ")";
  if (auto mend = mend_for(status, kind, e); !mend.empty())
    failure.detail += "; " + std::string{mend};
  if (failure.kind == failure_class::unknown && is_transient(kind))
    failure.detail += "; the server asks not to retry";
  return failure;
}

}  // namespace troupe

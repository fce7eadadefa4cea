#include "runtime/model/mock_error.hpp"

#include "runtime/core/json.hpp"

namespace troupe {
namespace {

json or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

/// Anthropic's names for statuses.
std::string_view anthropic_type(unsigned status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 402:
    return "billing_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 413:
    return "request_too_large";
  case 429:
    return "rate_limit_error";
  case 408:
  case 504:
    return "timeout_error";
  case 529:
    return "overloaded_error";
  default:
    return status < 500 ? "invalid_request_error" : "api_error";
  }
}

json error_object(const mock_error& e) {
  return {{"message", e.message},
          {"type", e.type},
          {"param", or_null(e.param)},
          {"code", or_null(e.code)}};
}

json anthropic_error(const mock_error& e, std::string_view request_id) {
  return {{"type", "error"},
          {"error", {{"type", anthropic_type(e.status)}, {"message", e.message}}},
          {"request_id", request_id}};
}

}  // namespace

mock_error error_of(fault_kind kind, wire_format wire) {
  auto anthropic = wire == wire_format::anthropic;
  switch (kind) {
  case fault_kind::rate_limited:
    return {429, "Rate limit reached, as the mock server's script asks. Please try again later.",
            "requests", "", "rate_limit_exceeded"};
  case fault_kind::overloaded:
    return {anthropic ? 529u : 503u, anthropic ? "Overloaded" : "The model is overloaded.",
            "server_error", "", ""};
  case fault_kind::quota:
    return {anthropic ? 402u : 429u,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota", "", "insufficient_quota"};
  case fault_kind::auth:
    return {401, "Incorrect API key provided, as the mock server's script asks.",
            "invalid_request_error", "", "invalid_api_key"};
  case fault_kind::bad_request:
    return {400, "This request is invalid, as the mock server's script asks.",
            "invalid_request_error", "", ""};
  case fault_kind::context_length:
    return {400,
            anthropic
              ? "prompt is too long: 208310 tokens > 200000 maximum"
              : "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 10025 tokens. Please reduce the length of the messages.",
            "invalid_request_error", anthropic ? "" : "messages",
            anthropic ? "" : "context_length_exceeded"};
  case fault_kind::error_event:
    if (anthropic)
      return error_of(fault_kind::overloaded, wire);
    break;
  default:
    break;
  }
  return {500, "The server had an error while processing your request, as its script asks.",
          "server_error", "", anthropic ? "" : "server_error"};
}

mock_error error_of(const mock_denial& denied, std::string_view model) {
  auto of = std::string{denied.of};
  auto text = denied.wait ? "Rate limit reached for " : "Request too large for ";
  auto per = denied.of.starts_with("concurrent") ? ": Limit " : " per min: Limit ";
  auto message = text + std::string{model} + " on " + of + per + std::to_string(denied.limit)
                 + ", Left " + std::to_string(denied.left) + ", Requested "
                 + std::to_string(denied.asked) + ".";
  if (denied.wait)
    message += " Please try again in " + openai_span(*denied.wait) + ".";
  return {429, message, of.ends_with("tokens") ? "tokens" : "requests", "", "rate_limit_exceeded"};
}

std::string error_body(wire_format wire, const mock_error& e, std::string_view request_id) {
  if (wire == wire_format::anthropic)
    return dump_json(anthropic_error(e, request_id));
  return dump_json({{"error", error_object(e)}});
}

std::string error_event(wire_format wire, const mock_error& e, std::string_view request_id) {
  if (wire == wire_format::openai_chat)
    return "data: " + error_body(wire, e, request_id) + "\n\n";
  auto data = wire == wire_format::anthropic ? anthropic_error(e, request_id)
                                             : json{{"type", "error"},
                                                    {"code", or_null(e.code)},
                                                    {"message", e.message},
                                                    {"param", or_null(e.param)}};
  return "event: error\ndata: " + dump_json(data) + "\n\n";
}

}  // namespace troupe

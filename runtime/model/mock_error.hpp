#pragma once
// Errors as OpenAI and Anthropic send them: status, body, and the word that clients decide by.

#include "runtime/model/codec.hpp"
#include "runtime/model/mock_faults.hpp"
#include "runtime/model/mock_limits.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// An error in OpenAI's terms; Anthropic's type follows from the status.
struct mock_error {
  unsigned status = 400;
  std::string message{};
  std::string type = "invalid_request_error";
  std::string param{};  ///< empty: null
  std::string code{};   ///< empty: null

  bool operator==(const mock_error&) const = default;
};

/// The error that a fault of kinds rate_limited to context_length, or error_event, is shown by.
[[nodiscard]] mock_error error_of(fault_kind kind, wire_format wire);

/// What is said to a request that was turned away. For ever, when it could never fit.
[[nodiscard]] mock_error error_of(const mock_denial& denied, std::string_view model);

/// The body. `request_id` is Anthropic's.
/// Source  platform.openai.com/docs/guides/error-codes, docs.claude.com/en/api/errors
[[nodiscard]] std::string error_body(wire_format wire, const mock_error& e,
                                     std::string_view request_id);

/// The event by which a stream that had begun well reports an error.
[[nodiscard]] std::string error_event(wire_format wire, const mock_error& e,
                                      std::string_view request_id);

}  // namespace troupe

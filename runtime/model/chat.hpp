#pragma once
// Chat as every provider understands it: messages, requests, replies, usage. Values only.

#include "runtime/core/ids.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/tool_spec.hpp"
#include "runtime/model/transcript.hpp"
#include "runtime/policy/failure.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Tokens as the server counted them. `input` includes `cached`; `output` includes `reasoning`.
struct token_usage {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t cached = 0;
  std::uint64_t reasoning = 0;

  token_usage& operator+=(const token_usage& x) {
    input += x.input;
    output += x.output;
    cached += x.cached;
    reasoning += x.reasoning;
    return *this;
  }
  [[nodiscard]] std::uint64_t total() const noexcept { return input + output; }
  bool operator==(const token_usage&) const = default;
};

/// What stays the same over a run's model calls. Shared, never changed.
struct model_settings {
  std::string model{};  ///< the provider's own name, without our "provider/" prefix
  std::optional<double> temperature{};
  std::optional<std::uint32_t> max_output_tokens{};
  std::optional<std::int64_t> seed{};
  std::vector<std::string> stop{};  ///< at most 4
  std::vector<tool_spec> tools{};   ///< empty for code agents
  json extra_body{};                ///< members merged into the request's top level; null for none
};

/// One model call. Copying is cheap: the messages are shared, not copied.
struct model_request {
  std::shared_ptr<const model_settings> settings{};
  transcript_view messages{};
  run_id run{};            ///< for traces and fairness; not sent
  std::uint32_t turn = 0;  ///< assistant messages so far; mocks use it
  time_point deadline = never;
};

struct model_reply {
  std::string text{};  ///< valid UTF-8; empty when the server sent null
  std::vector<tool_call_message> tool_calls{};
  std::string finish_reason{};  ///< stop, length, tool_calls, content_filter, or the server's word
  std::string model{};          ///< as the server returned it
  token_usage usage{};
  std::uint32_t attempts = 1;  ///< requests sent for this reply, retries included
  millis latency{0};           ///< from the ask to the reply, waiting and retries included
};

/// Why a model call gave no reply, after all retries.
struct model_failure {
  failure_class kind = failure_class::unknown;
  std::string detail;  ///< one line for the user: what, where, the mend
  std::optional<millis> retry_after;
  std::uint32_t attempts = 1;
};

}  // namespace troupe

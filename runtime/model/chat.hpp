#pragma once
// Chat as every provider understands it: messages, requests, replies, usage. Values only.

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/json.hpp"
#include "runtime/core/time.hpp"
#include "runtime/core/token_usage.hpp"
#include "runtime/model/tool_spec.hpp"
#include "runtime/model/transcript.hpp"
#include "runtime/policy/failure.hpp"
#include "runtime/policy/rate_report.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Whether the model calls tools.
struct tool_choice {
  enum class mode : std::uint8_t { automatic, none, required, named };
  mode how = mode::automatic;
  std::string name{};  ///< of the one tool to call, for `named`

  bool operator==(const tool_choice&) const = default;
};

/// A shape that the reply's text must have. The provider holds the model to it.
struct output_schema {
  std::string name = "answer";
  ordered_json schema{};  ///< JSON Schema
  bool strict = true;
};

/// What stays the same over a run's model calls. Shared, never changed.
struct model_settings {
  std::string model{};  ///< the provider's own name, without our "provider/" prefix
  std::optional<double> temperature{};
  std::optional<std::uint32_t> max_output_tokens{};
  std::optional<std::int64_t> seed{};
  std::vector<std::string> stop{};            ///< at most 4
  std::vector<tool_spec> tools{};             ///< empty for code agents
  tool_choice choice{};                       ///< without tools it is not sent
  std::optional<bool> parallel_tool_calls{};  ///< false: at most one call in a reply
  std::optional<output_schema> output{};
  std::string reasoning_effort{};  ///< the provider's word: low, medium, high, ...; empty: its own
  json extra_body{};               ///< members merged into the request's top level; null for none
};

/// One model call. Copying is cheap: the messages are shared, not copied.
struct model_request {
  std::shared_ptr<const model_settings> settings{};
  transcript_view messages{};
  run_id run{};            ///< for traces and fairness; not sent
  std::uint32_t turn = 0;  ///< assistant messages so far; mocks use it
  time_point deadline = never;
  /// Of several independent replies to one request, which: the epoch. Caches tell them apart.
  std::uint32_t draw = 0;
};

struct model_reply {
  std::string text{};       ///< valid UTF-8; empty when the server sent null
  std::string reasoning{};  ///< what the server showed of it, for viewers
  std::vector<tool_call_message> tool_calls{};
  /// JSON of the codec's own that goes back with the message: reasoning, signatures, members that
  /// we do not know. Empty: nothing does.
  std::string kept{};
  std::string finish_reason{};  ///< stop, length, tool_calls, content_filter, or the server's word
  std::string model{};          ///< as the server returned it
  token_usage usage{};
  std::uint32_t attempts = 1;  ///< requests sent for this reply, retries included
  millis latency{0};           ///< from the ask to the reply, waiting and retries included
  rate_report rates{};         ///< the server's limits as it stated them; not kept
  bool substitute = false;     ///< another model's than the one asked for; not kept

  bool operator==(const model_reply&) const = default;
};

/// A piece of a reply as it comes. All `text` pieces of a try together are the reply's text.
struct model_delta {
  enum class kind : std::uint8_t {
    text,
    reasoning,
    tool_call,  ///< a piece of a call's arguments; its first one names the tool
    restart     ///< the try has failed and another begins: what was shown of it is void
  };
  kind what = kind::text;
  std::string text{};      ///< whole UTF-8 sequences
  std::uint32_t call = 0;  ///< tool_call: which one, from 0
  std::string tool{};      ///< tool_call: set in the call's first piece only

  bool operator==(const model_delta&) const = default;
};

/// Why a model call gave no reply, after all retries.
struct model_failure {
  failure_class kind = failure_class::unknown;
  std::string detail;  ///< one line for the user: what, where, the mend
  std::optional<millis> retry_after;
  std::uint32_t attempts = 1;
  rate_report rates{};  ///< the server's limits as it stated them; not kept
};

/// The arguments of a call as an object. No text at all means no arguments: {}.
/// Errors  corrupt: not JSON, cut short, or not an object. Such a call must not be carried out.
[[nodiscard]] result<json> arguments_of(const tool_call_message& call);

}  // namespace troupe

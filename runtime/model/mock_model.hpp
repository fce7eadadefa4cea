#pragma once
// A scripted or rule-driven model: the mock/ provider, which answers in process, and what
// `troupe mock` says over HTTP. Pure: who calls it waits out the latency. It ships: users and tests
// both use it.

#include "runtime/core/random.hpp"
#include "runtime/model/chat.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// How long a mocked reply takes. A constant when sigma is 0, else log-normal around the median.
struct latency_model {
  millis median{0};
  double sigma = 0;  ///< of the logarithm
  millis cap{60'000};

  /// In [0, cap]. Draws from `random` only when sigma is above 0.
  [[nodiscard]] micros draw(rng& random) const;
};

/// A question to a script, whatever wire it came by.
struct mock_question {
  std::string_view task;   ///< text of the last user message before the model's first reply
  std::string_view last;   ///< text of what came since the model's last reply, without system
  std::string_view model;  ///< as asked for
  std::uint32_t turn = 0;  ///< replies so far
  std::uint64_t input_tokens = 0;          ///< counted for the request
  std::string_view call_prefix = "call_";  ///< of the ids made for tool calls
};

/// A script, read from JSON (one object):
/// ```json
/// {
///   "latency": {"median_ms": 50, "sigma": 0.5, "cap_ms": 5000},
///   "failures": {"rate": 0.05, "kind": "rate_limited", "retry_after_ms": 100},
///   "conversations": [{"task": "exact text of the task", "replies": ["first", "second", ...]}],
///   "rules": [{"if_last_contains": "Error:", "if_task_contains": "...", "if_model": "exact name",
///              "from_turn": 1, "reply": "..."}],
///   "default": "reply when nothing fits"
/// }
/// ```
/// All members are optional. A reply is a text, or an object of which all members are optional:
/// ```json
/// {"text": "...", "reasoning": "...",
///  "tool_calls": [{"name": "add", "arguments": {"a": 1}, "id": "call_1"}],
///  "finish_reason": "length", "latency_ms": 250,
///  "usage": {"input": 100, "output": 20, "cached": 80, "reasoning": 5},
///  "failure": {"kind": "overloaded", "retry_after_ms": 100}}
/// ```
/// A call's `arguments` are an object, or a text that is sent as it is, broken JSON included; an id
/// that is not given is made up. A conversation is found by its task, where a leading "New task:\n"
/// is ignored. Its reply number `turn` is used while there is one; then the first rule that fits,
/// then the default; with none of these the reply is an error text. Usage that a reply does not
/// give is counted as bytes / 4. A failure's kind is a name of failure_class. A lookup costs the
/// same for any number of conversations.
///
/// `troupe mock` alone looks at these; the mock/ provider has no use for them:
/// ```json
/// {
///   "stream": {"chunk_bytes": 20, "gap": {"median_ms": 10, "sigma": 0.3, "cap_ms": 1000}},
///   "models": ["the only names that are answered"],
///   "limits": {"requests_per_minute": 600, "tokens_per_minute": 100000,
///              "input_tokens_per_minute": 0, "output_tokens_per_minute": 0, "concurrent": 0,
///              "burst_ms": 60000, "reject": 1.0, "headers": true},
///   "faults": [{"kind": "rate_limited", "rate": 0.3, "retry_after_ms": 200,
///               "every": 1000, "burst": 100, "every_ms": 60000, "burst_ms": 5000,
///               "at": 0.5, "pause_ms": 1000}]
/// }
/// ```
/// mock_limit_settings and fault_rule say what these mean.
class mock_script {
public:
  struct data;

  /// Errors  corrupt or invalid_argument: place, what was expected, nearest key.
  static result<mock_script> parse(std::string_view json_text);

  static mock_script of(data contents);

  /// A script whose one reply is used for every turn below `turns`, then `last`. For benches.
  static mock_script repeating(const std::string& reply, std::uint32_t turns, std::string last);

  struct drawn {
    tl::expected<model_reply, model_failure> reply;
    micros latency{0};
  };

  /// The same script, request and random state give the same answer. Messages are read from their
  /// wire form, so the transcript must have been encoded by openai_codec().
  [[nodiscard]] drawn answer(const model_request& request, rng& random) const;

  /// The same for a question that was read elsewhere.
  [[nodiscard]] drawn answer(const mock_question& question, rng& random) const;

  [[nodiscard]] const data& contents() const noexcept { return *data_; }

private:
  explicit mock_script(std::shared_ptr<const data> d) : data_{std::move(d)} {}

  std::shared_ptr<const data> data_;
};

}  // namespace troupe

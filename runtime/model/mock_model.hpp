#pragma once
// The mock/ provider: a scripted or rule-driven model that answers in process, after a drawn
// latency. Pure: who calls it waits out the latency. It ships: users and tests both use it.

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

/// A script, read from JSON (one object):
/// ```json
/// {
///   "latency": {"median_ms": 50, "sigma": 0.5, "cap_ms": 5000},
///   "failures": {"rate": 0.05, "kind": "rate_limited", "retry_after_ms": 100},
///   "conversations": [{"task": "exact text of the task", "replies": ["first", "second", ...]}],
///   "rules": [{"if_last_contains": "Error:", "if_task_contains": "...", "from_turn": 1,
///              "reply": "..."}],
///   "default": "reply when nothing fits"
/// }
/// ```
/// All members are optional. A conversation is found by its task: the text of the last user message
/// before the first assistant message, where a leading "New task:\n" is ignored. Its reply number
/// `turn` is used while there is one; then the first rule that fits, then the default; with none of
/// these the reply is an error text. Usage is counted as bytes / 4. A failure's kind is a name of
/// failure_class. Messages are read from their wire form, so the transcript must have been encoded
/// by openai_codec(). A lookup costs the same for any number of conversations.
class mock_script {
public:
  struct data;

  /// Errors  corrupt or invalid_argument: place, what was expected, nearest key.
  static result<mock_script> parse(std::string_view json_text);

  /// A script whose one reply is used for every turn below `turns`, then `last`. For benches.
  static mock_script repeating(const std::string& reply, std::uint32_t turns, std::string last);

  struct drawn {
    tl::expected<model_reply, model_failure> reply;
    micros latency{0};
  };

  /// The same script, request and random state give the same answer.
  [[nodiscard]] drawn answer(const model_request& request, rng& random) const;

private:
  explicit mock_script(std::shared_ptr<const data> d) : data_{std::move(d)} {}

  std::shared_ptr<const data> data_;
};

}  // namespace troupe

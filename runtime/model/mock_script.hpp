#pragma once
// A mock script once read: what mock_model.hpp's comment describes, ready for lookup.

#include "runtime/model/mock_model.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

struct mock_rule {
  std::optional<std::string> if_last_contains;
  std::optional<std::string> if_task_contains;
  std::uint32_t from_turn = 0;
  std::string reply;
};

struct mock_failures {
  double rate = 0;
  failure_class kind = failure_class::server;
  std::optional<millis> retry_after;
};

struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const noexcept {
    return std::hash<std::string_view>{}(s);
  }
};

struct mock_script::data {
  latency_model latency;
  mock_failures failures;
  /// Replies by task, where the task stands as in a transcript: JSON-escaped, without quotes.
  std::unordered_map<std::string, std::vector<std::string>, string_hash, std::equal_to<>>
    conversations;
  std::vector<mock_rule> rules;
  std::optional<std::string> fallback;
  std::vector<std::string> every_run;  ///< replies by turn for any task; for benches
};

/// Errors  as mock_script::parse.
[[nodiscard]] result<mock_script::data> read_mock_script(std::string_view json_text);

}  // namespace troupe

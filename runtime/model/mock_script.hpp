#pragma once
// A mock script once read: what mock_model.hpp's comment describes, ready for lookup.

#include "runtime/model/mock_faults.hpp"
#include "runtime/model/mock_limits.hpp"
#include "runtime/model/mock_model.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

struct mock_failure {
  failure_class kind = failure_class::server;
  std::optional<millis> retry_after{};
};

/// Tokens that the script gives; the others are counted.
struct mock_usage {
  std::optional<std::uint64_t> input{};
  std::optional<std::uint64_t> output{};
  std::optional<std::uint64_t> cached{};
  std::optional<std::uint64_t> reasoning{};
  std::optional<std::uint64_t> cache_written{};
};

struct mock_reply {
  std::string text{};
  std::string reasoning{};
  std::vector<tool_call_message> tool_calls{};  ///< without an id: one is made up
  std::string finish_reason{};                  ///< empty: stop or tool_calls
  mock_usage usage{};
  std::optional<millis> latency{};  ///< instead of the drawn one
  std::optional<mock_failure> failure{};
};

struct mock_rule {
  std::optional<std::string> if_last_contains;
  std::optional<std::string> if_task_contains;
  std::optional<std::string> if_model;
  std::uint32_t from_turn = 0;
  mock_reply reply;
};

struct mock_failures {
  double rate = 0;
  mock_failure how;
};

/// How a reply is cut into events, and the time from one to the next.
struct mock_stream {
  std::size_t chunk_bytes = 20;
  latency_model gap;
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
  std::unordered_map<std::string, std::vector<mock_reply>, string_hash, std::equal_to<>>
    conversations;
  std::vector<mock_rule> rules;
  std::optional<mock_reply> fallback;
  std::vector<mock_reply> every_run;  ///< replies by turn for any task; for benches
  mock_stream stream;
  std::vector<std::string> models;  ///< the only ones that are there; empty: every one is
  mock_limit_settings limits;
  std::vector<fault_rule> faults;
};

/// The task as it stands in a transcript: JSON-escaped, without quotes.
[[nodiscard]] std::string escaped_for_lookup(std::string_view task);

/// Errors  as mock_script::parse.
[[nodiscard]] result<mock_script::data> read_mock_script(std::string_view json_text);

}  // namespace troupe

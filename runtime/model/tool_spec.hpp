#pragma once
// What a model is told about a tool. The code that answers calls is in tools/.

#include "runtime/core/json.hpp"

#include <string>

namespace troupe {

/// A tool as prompts and providers see it. Value.
struct tool_spec {
  std::string name{};         ///< a Python identifier, no keyword; unique within an agent
  std::string description{};  ///< for the model; plain text, may have several lines
  /// JSON Schema of the arguments object: {"type":"object","properties":{...},"required":[...]}.
  /// The order of `properties` is the order of positional arguments.
  ordered_json parameters{};
  std::string output_type = "any";  ///< smolagents' word: string, number, object, any, ...
  bool ends_run = false;            ///< its result is the run's answer (final_answer)
  bool idempotent = false;          ///< may be repeated when its outcome is unknown
  bool own_time = false;            ///< what it takes does not count for the snippet that calls it
  ordered_json output_schema{};     ///< JSON Schema of the result; null: not known
};

}  // namespace troupe

#pragma once
// A tool: what the model is told, and the C++ that answers.

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/time.hpp"
#include "runtime/model/tool_spec.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a call may know about its run.
struct tool_context {
  run_id run;
  call_id call;
  time_point deadline = never;
};

/// A native tool. `call` may be run on several threads at once and must not block for long; it
/// returns a JSON value, or an error whose detail the model reads.
struct tool {
  tool_spec spec;
  std::function<result<json>(const json& arguments, const tool_context& context)> call;
};

/// The tools of one agent, by name. Value; tools are shared.
class tool_set {
public:
  /// Errors  invalid_argument: a name that is no identifier, is a Python keyword or builtin, or is
  /// taken; parameters that are not an object schema.
  [[nodiscard]] result<void> add(tool t);

  [[nodiscard]] const tool* find(std::string_view name) const;
  [[nodiscard]] std::vector<tool_spec> specs() const;
  [[nodiscard]] std::size_t size() const noexcept { return tools_.size(); }

  /// Checks `arguments` (an object, null for none, or one value for the only parameter or the only
  /// required one) against the tool's schema, after values were turned into its types where nothing
  /// is lost ("3" into 3), fills in defaults (for null too, where that is no value of its own), and
  /// calls it. Unknown names are refused unless the schema allows additional properties. The one
  /// check for calls from code and from models. Never throws. Thread-safe.
  /// Errors  not_found (lists the names), invalid_argument (says what to change), or the tool's.
  [[nodiscard]] result<json> call(std::string_view name, const json& arguments,
                                  const tool_context& context) const;

private:
  struct entry;
  [[nodiscard]] error unknown_tool(std::string_view name) const;
  std::vector<std::shared_ptr<const entry>> tools_;
};

/// The answer of a run: ends the snippet at once. One argument, `answer`, of any type.
[[nodiscard]] tool final_answer_tool();

/// Converts between units of one dimension: length, mass, time, temperature, volume, area, speed,
/// data, energy, pressure. Arguments: value (number), from_unit, to_unit (strings).
[[nodiscard]] tool convert_units_tool();

/// The host's date and time: ISO 8601, with an offset in minutes from UTC as optional argument.
/// A tool, not the sandbox's clock, so that a recorded run replays with the same answer. `clock`
/// gives microseconds since the epoch.
[[nodiscard]] tool current_time_tool(std::function<std::int64_t()> clock = wall_micros);

/// A built-in tool by name, e.g. "convert_units".
/// Errors  not_found: names the nearest and lists all.
[[nodiscard]] result<tool> builtin_tool(std::string_view name);

[[nodiscard]] std::vector<std::string_view> builtin_tool_names();

}  // namespace troupe

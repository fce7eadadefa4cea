#pragma once
// What happens to a run, and what the loop wants done about it. The events are what the journal
// keeps; folding them again gives the same commands.

#include "runtime/agent/snippet.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/json.hpp"
#include "runtime/model/chat.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// What a run has spent, its managed agents included.
struct run_usage {
  token_usage tokens{};
  sandbox_usage sandbox{};
  std::uint32_t model_attempts = 0;
};

// --- events: inputs of the loop -----------------------------------------------------------------

struct run_started {
  std::string task{};                   ///< the last user message, when the input is one string
  std::vector<chat_message> history{};  ///< earlier messages of a chat input; usually empty
  std::vector<std::string> images{};    ///< with the task: https: URLs or data:image/...;base64,...
  millis time_left{0};                  ///< of the run that called for this one; 0: no limit
};
struct model_replied {
  model_reply reply{};
};
struct model_failed {
  model_failure failure{};
};
/// A snippet's end. After an end that the sandbox does not survive, the next one gets a fresh one.
struct snippet_done {
  snippet_outcome outcome{};
};
/// No sandbox could be had for the snippet.
struct sandbox_failed {
  std::string detail{};
};
struct cancel_requested {
  std::string reason{};
};
/// The run's own deadline has passed.
struct deadline_passed {};
/// A tool or managed agent has answered call_tool number `call`. What code in a sandbox calls is
/// kept under the same kind, for a resume; of that a code agent's loop only takes what was spent.
struct tool_replied {
  call_id call{};
  result<json> outcome{};
  std::optional<run_usage> used{};  ///< what a managed agent has spent on it
};

using agent_event = std::variant<run_started, model_replied, model_failed, snippet_done,
                                 sandbox_failed, cancel_requested, deadline_passed, tool_replied>;

/// The journal's word for an event: "run_started", "model_replied", ...
[[nodiscard]] std::string_view kind_of(const agent_event& e) noexcept;

/// An event as a JSON object, complete enough to fold it again.
[[nodiscard]] json to_json(const agent_event& e);

/// Errors  corrupt: unknown kind, or a payload of another shape.
[[nodiscard]] result<agent_event> event_from_json(std::string_view kind, const json& payload);

// --- commands: what the loop wants done
// -----------------------------------------------------------

/// Ask the model. One call is open at a time.
struct ask_model {
  model_request request{};
};
/// Run code in the run's sandbox (opened on first use, replaced when it has died).
struct run_code {
  snippet code{};
};
/// Call a tool. Several calls may be out at once, each is answered by tool_replied.
struct call_tool {
  call_id call{};  ///< unique in the run
  std::string tool{};
  json arguments{};  ///< as the model gave them, decoded; the tool's schema decides on them
};
/// Nothing follows from the event yet: other calls are out. It counts, and is to be kept.
struct await_more {};
/// Tell whoever watches, and keep in the journal: "action", "observation", "plan" {step, update,
/// remaining_steps, text}, "compaction" {step, how, bytes_before, bytes_after, messages, text?},
/// ...
struct note {
  std::string kind{};
  json payload{};
};
/// Abandon what is in flight: model call, snippet, tool calls. Their events, if they still come,
/// are ignored.
struct abandon {};

enum class run_end : std::uint8_t { success, max_steps, deadline, budget, stuck, cancelled, error };

[[nodiscard]] std::string_view to_string(run_end end) noexcept;

/// The run is over; always the last command, exactly once.
struct finish {
  run_end end = run_end::error;
  std::optional<value> answer{};  ///< for max_steps too, when the forced answer passed its checks
  std::string error{};            ///< one line, empty on success
  std::uint32_t turns = 0;
  std::uint32_t snippets = 0;
  std::uint32_t snippet_failures = 0;
  std::uint32_t model_attempts = 0;
  token_usage tokens{};
  sandbox_usage sandbox{};

  /// Adds what a managed agent has spent.
  finish& operator+=(const run_usage& x);
};

[[nodiscard]] run_usage usage_of(const finish& end);

using agent_command =
  std::variant<ask_model, run_code, note, abandon, finish, call_tool, await_more>;

}  // namespace troupe

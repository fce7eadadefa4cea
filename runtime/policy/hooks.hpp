#pragma once
// Functions of the user's that are asked before a run does something, and told after it.

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/json.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Where a hook is called. The members of what it is shown stand beside each; of a point before,
/// those in brackets may be changed.
enum class hook_point : std::uint8_t {
  before_step,   ///< step
  before_model,  ///< step, model, [temperature], [max_output_tokens], [seed], [extra_body]
  after_model,   ///< step, text, tool_calls, usage; or error
  before_tool,   ///< step, call, tool, [arguments]; managed agents are tools too
  after_tool,    ///< step, call, tool, value; or error
  before_code,   ///< step, [code]
  after_code,    ///< step, end, logs, and what else a snippet's outcome has
  after_step,    ///< step, text, is_error: what the model reads next
  run_ended      ///< end, answer, error
};

/// "before_step", ...
[[nodiscard]] std::string_view to_string(hook_point at) noexcept;

struct hook_event {
  hook_point at{};
  run_id run{};
  std::string agent{};
  json what{};
};

/// What a hook says to a point before. By default it goes on.
struct hook_verdict {
  json changed{};        ///< members in the place of those shown; null: as it is
  bool vetoed = false;   ///< it is not done
  std::string reason{};  ///< of a veto; the model reads it, where there is something to read

  static hook_verdict go_on() { return {}; }
  static hook_verdict veto(std::string why) { return {{}, true, std::move(why)}; }
  static hook_verdict change(json members) { return {std::move(members), false, {}}; }
};

/// Called once, from any thread; later calls are ignored. A reply that is dropped instead is a
/// failure of the hook.
using hook_reply = std::function<void(hook_verdict)>;

struct run_hook {
  std::string name{};
  std::vector<hook_point> points{};
  /// Must not block; it may reply later. Where it is told, its reply is ignored.
  std::function<void(const hook_event&, hook_reply)> call{};
  /// A failure (it throws, drops its reply, or changes what cannot be) is a veto; else it is noted,
  /// and the run goes on as if it had not been asked.
  bool must = false;
};

/// A hook that has its verdict at once.
[[nodiscard]] run_hook make_hook(std::string name, std::vector<hook_point> points,
                                 std::function<hook_verdict(const hook_event&)> fn);

/// Errors  invalid_argument: no name, no function, no points, two of one name.
[[nodiscard]] result<void> validate(const std::vector<run_hook>& hooks);

// --- approval
// ------------------------------------------------------------------------------------

enum class approval : std::uint8_t { automatic, deny, ask };

struct approval_settings {
  approval how = approval::automatic;
  /// Tools that it is about; "code": snippets; "*": all of it.
  std::vector<std::string> what{"*"};
};

/// Asks whether `e` may be done: yes, or no with a reason ("" for none). Must not block.
using approver = std::function<void(const hook_event& e, std::function<void(bool, std::string)>)>;

/// The policy as a hook that must agree. `ask` may be empty for automatic and deny.
[[nodiscard]] run_hook approval_hook(approval_settings settings, approver ask);

}  // namespace troupe

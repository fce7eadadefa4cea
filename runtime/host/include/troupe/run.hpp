#pragma once
// One run of an agent: what it says while it goes on, and what it comes to.

#include <troupe/error.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using json = nlohmann::json;

/// How a run ended. Value.
struct run_outcome {
  std::string end = "error";  ///< success, max_steps, deadline, budget, stuck, cancelled, error
  json answer{};              ///< null when there is none; max_steps may have one too
  std::string text{};         ///< the answer as text
  std::string error{};        ///< one line; empty on success
  std::uint32_t turns = 0;    ///< model replies
  std::uint32_t tool_calls = 0;
  std::uint32_t model_attempts = 0;  ///< requests sent, retries included
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t untold_replies = 0;   ///< that told no tokens: then there were more
  std::chrono::microseconds wall{0};  ///< from its start, not from its submission
  std::string model{};                ///< as the server names it

  [[nodiscard]] bool ok() const noexcept { return end == "success"; }
};

/// Something that happened in a run. Value.
struct live_event {
  std::uint64_t run = 0;
  std::uint64_t sequence = 0;  ///< from 1 in each run; a gap: this reader was too slow for them
  /// "reply" and "reasoning" {"text"}: pieces of a reply on its way; "reply_again": it begins anew;
  /// "output" {"text"}: of code; "paused" {"step"}; and the kinds of the journal: run_started,
  /// model_requested, model_replied, action, tool_requested, tool_replied, snippet_done,
  /// observation, run_ended.
  std::string kind{};
  json payload{};
  std::string agent{};      ///< whose it is: the run's own, or one that works for it
  std::uint32_t depth = 0;  ///< levels of agents between that one and the run's own
};

using event_callback = std::function<void(const live_event&)>;
using end_callback = std::function<void(const run_outcome&)>;

/// What one run has of its own. Callbacks run one at a time on the runtime's callback thread: a
/// slow one delays the others and no run. What they throw is logged and goes no further.
struct submit_options {
  event_callback on_event{};  ///< asks for the run's events, streamed replies among them
  end_callback on_end{};      ///< once, after the last event
  bool paused = false;        ///< begins as after run::pause()
  /// Put into the work directory of a code agent's sandbox: relative path, bytes.
  std::vector<std::pair<std::string, std::string>> files{};
};

/// A submitted run. A handle: copies mean the same run, and dropping all of them does not cancel
/// it. Valid also after the runtime's end, when every run has an outcome. Thread-safe.
class run {
public:
  /// Unique in its runtime, and in the journal when there is one.
  [[nodiscard]] std::uint64_t id() const noexcept;

  [[nodiscard]] bool done() const;

  /// Blocks until the end.
  [[nodiscard]] run_outcome wait() const;

  /// Blocks for at most that time; empty: it goes on.
  [[nodiscard]] std::optional<run_outcome> wait_for(std::chrono::milliseconds time) const;

  /// A future of its own for each caller. It never holds an exception.
  [[nodiscard]] std::future<run_outcome> future() const;

  /// Calls back once when the run has ended, at once (still on the callback thread) if it has.
  /// After the runtime's end: on this thread, before it returns.
  void on_end(end_callback callback) const;

  /// Ends it as "cancelled": its model call, tool calls and code are abandoned. No effect on a run
  /// that has ended.
  void cancel(std::string reason = "cancelled by the program") const;

  /// Has it stand still before its next request to the model; what is under way ends first, and
  /// deadlines go on. The event "paused" says that it does.
  void pause() const;
  /// Lets one request through, then stands still again.
  void step() const;
  void resume() const;

private:
  friend class runtime;
  friend class submitted_runs;
  struct state;
  explicit run(std::shared_ptr<state> s) : state_{std::move(s)} {}
  std::shared_ptr<state> state_;
};

}  // namespace troupe

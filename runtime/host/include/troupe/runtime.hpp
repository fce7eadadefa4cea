#pragma once
// troupe in a C++ program: a runtime, agents, runs. Shows neither CAF nor Boost; for co_await with
// Boost.Asio there is <troupe/asio.hpp>. docs/embedding.md is the guide.

#include <troupe/error.hpp>
#include <troupe/run.hpp>
#include <troupe/tool.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a hook is shown. `what` has by point: before_step {step}; before_model {step, model,
/// temperature, max_output_tokens, seed, extra_body}; before_tool {step, call, tool, arguments};
/// before_code {step, code}; after_model, after_tool, after_code what came of it; after_step {step,
/// text, is_error}, which the model reads next; run_ended {end, answer, error}.
struct hook_question {
  std::uint64_t run = 0;
  std::string agent{};
  std::string at{};  ///< "before_step", ...
  json what{};
};

/// By default it goes on as it is.
struct hook_answer {
  json changed{};  ///< before_model, before_tool (arguments), before_code (code): in the place of
                   ///< the members shown; null: nothing
  bool vetoed = false;   ///< it is not done; a vetoed step or model call ends the run
  std::string reason{};  ///< of a veto; the model reads it
};

/// A function that is asked before runs do something, or told after it. It runs on a thread of the
/// runtime's and must not block; `ask_later` may answer when it likes, once, from any thread.
struct hook {
  std::string name{};
  std::vector<std::string> points{};  ///< e.g. {"before_code", "after_step"}
  std::function<hook_answer(const hook_question&)> ask{};
  std::function<void(const hook_question&, std::function<void(hook_answer)>)> ask_later{};
  bool must = false;  ///< when it throws or never answers, that is a veto; else it is passed over
};

/// What a runtime is made of. Names, forms and defaults are those of `troupe eval --help`.
/// Variables TROUPE_* are not read; keys and proxies are found where the program finds them.
struct runtime_options {
  std::string model{};        ///< "provider/model": "openai/gpt-4.1", "mock/script.json"
  std::string base_url{};     ///< empty: the provider's
  std::string api_key_env{};  ///< variable that holds the key; empty: the provider's
  std::string executor{};     ///< what runs agents' code: "jail" (when empty), "process"
  std::string profile{};      ///< of the sandboxes: a shipped one's name, or a file
  std::optional<std::uint32_t> max_concurrency{};  ///< runs at once, 64; the others wait
  std::string out{};                               ///< journal, new or old; empty: nothing is kept
  std::string config{};                            ///< file as troupe.yaml; empty: none
  std::map<std::string, std::string> options{};    ///< all others by name: {{"rpm", "500"}}
  std::uint32_t tool_threads = 4;  ///< native tools that may run at once; at least 1
  std::vector<hook> hooks{};       ///< of all runs, in their order
};

/// A test of an answer before it is taken. What it refuses goes back to the model with the reason.
/// It runs on an actor's thread and must not block.
struct answer_check {
  std::string name{};
  std::function<result<void>(const json& answer, const std::string& text)> check{};
};

/// An agent of one runtime. A handle; cheap to copy. Thread-safe.
class agent {
public:
  [[nodiscard]] const std::string& name() const noexcept;

private:
  friend class runtime;
  struct definition;
  explicit agent(std::shared_ptr<const definition> d) : definition_{std::move(d)} {}
  std::shared_ptr<const definition> definition_;
};

/// What makes an agent. What is empty is as the runtime's options say.
struct agent_spec {
  std::string name = "agent";
  std::vector<native_tool> tools{};  ///< final_answer is always there
  std::string instructions{};        ///< added to the system prompt
  std::string model{};               ///< "provider/model"; empty: the runtime's
  std::string kind{};         ///< "code" (writes Python, in a sandbox) or "tool" (calls tools)
  std::string description{};  ///< what it is good for: read by the model of one that manages it
  /// Agents of the same runtime that it may call, as tools or from its code. Each call is a run of
  /// its own, which pays out of this one's budget and ends with it.
  std::vector<agent> team{};
  std::vector<std::string> builtin_tools{};      ///< by name, e.g. "convert_units"
  std::vector<std::string> imports{};            ///< modules that its code may import
  std::optional<std::uint32_t> max_steps{};      ///< model replies before the answer is asked for
  std::chrono::milliseconds run_time{0};         ///< wall time of one run; 0: no limit of its own
  std::vector<answer_check> checks{};            ///< in their order
  std::string file{};                            ///< agent file that the others are put over
  std::map<std::string, std::string> options{};  ///< of the model and the agent: temperature, ...
};

/// One of the agents of a session: `agent.name` is how the others call it.
struct session_member_spec {
  agent_spec agent{};
  std::vector<std::string> topics{};  ///< what it reads of what is published
};

/// Agents that write to each other. Each has a mailbox and takes one letter at a time; a letter is
/// a run of its own, in the conversation of those before it. Besides their own tools they have
/// send_message, ask_agent, hand_off and, where somebody reads a topic, publish.
struct session_spec {
  std::vector<session_member_spec> members{};  ///< at least two; the first gets the task
  std::uint32_t max_letters = 200;  ///< that they may send in all: what they say beyond is refused
  std::size_t memory = 20;          ///< letters that each remembers, with its answers
  std::chrono::milliseconds time{0};  ///< of the whole session; 0: no limit
};

/// A session of one runtime, to be had any number of times. A handle; cheap to copy. Thread-safe.
class session {
private:
  friend class runtime;
  struct definition;
  explicit session(std::shared_ptr<const definition> d) : definition_{std::move(d)} {}
  std::shared_ptr<const definition> definition_;
};

/// What all runs of a runtime have used. Value.
struct runtime_usage {
  std::uint64_t calls = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  double money = 0;  ///< by the price list; 0 where the model has no price in it
  std::string currency{};
};

/// Threads, sockets, sandboxes and the supervision tree. Several may live side by side. All members
/// are thread-safe, except moving and the destructor.
class runtime {
public:
  /// Blocks for as long as files and threads take.
  /// Errors  all that is wrong before the first run, in one line with its mend: an option, a key
  ///         that is not set, a script or journal that cannot be read.
  [[nodiscard]] static result<runtime> start(const runtime_options& options);

  /// As stop().
  ~runtime();
  runtime(runtime&& other) noexcept;
  runtime& operator=(runtime&& other) noexcept;

  /// Checks and prepares an agent. The first one that writes code opens a sandbox to see that it
  /// can, which blocks for milliseconds, at most the profile's open_timeout.
  /// Errors  invalid_argument, not_found: an option, a tool's name or schema, a template; denied,
  ///         unavailable: no sandbox can be opened here.
  [[nodiscard]] result<agent> define(agent_spec spec);

  /// Starts a run as soon as there is a place for it; never blocks. That it cannot be started (the
  /// runtime has ended, the agent is another one's) is its outcome.
  [[nodiscard]] run submit(const agent& who, std::string task, submit_options how = {});

  /// Checks and prepares the agents of a session.
  /// Errors  as define; invalid_argument: fewer than two members, names that are none or alike.
  [[nodiscard]] result<session> define(session_spec spec);

  /// Has the session's first agent work on the task. The answer, by whomever it was handed on to,
  /// ends the session; what it has cost is that of all its runs. Takes one place of
  /// max_concurrency; a step is one of each agent at work; its files are put into every sandbox.
  [[nodiscard]] run submit(const session& who, std::string task, submit_options how = {});

  [[nodiscard]] runtime_usage usage() const;

  /// Cancels what runs, waits until it has ended, at most 20 s, and completes every run; then all
  /// callbacks have been called. Later submissions end at once as "cancelled". Idempotent. Not to
  /// be called from a tool or a check; from a callback it returns before the callbacks that wait.
  void stop();

private:
  struct impl;
  explicit runtime(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe

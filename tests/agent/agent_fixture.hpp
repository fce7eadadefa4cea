#pragma once
// Scripted runs of the agent loop: what the model says and how snippets end is given by the test.

#include "runtime/agent/agent_machine.hpp"
#include "runtime/model/codec.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::test {

inline constexpr time_point start_time{std::chrono::hours{1}};

inline tool_spec final_answer_spec() {
  tool_spec spec;
  spec.name = "final_answer";
  spec.description = "Gives the answer.";
  spec.parameters = ordered_json::parse(
    R"({"type":"object","properties":{"answer":{"description":"the answer"}},"required":["answer"]})");
  spec.ends_run = true;
  return spec;
}

inline agent_options options_for_tests() {
  agent_options o;
  o.prompts = shipped_prompts();
  o.model.model = "scripted";
  o.tools = {final_answer_spec()};
  return o;
}

inline std::shared_ptr<const agent_definition> definition_of(agent_options o) {
  auto definition = define_agent(std::move(o));
  REQUIRE(definition);
  return *definition;
}

/// The agent of options_for_tests().
inline const std::shared_ptr<const agent_definition>& plain_agent() {
  static const auto made = definition_of(options_for_tests());
  return made;
}

inline model_replied reply(std::string text, token_usage usage = {}) {
  model_reply r;
  r.text = std::move(text);
  r.finish_reason = "stop";
  r.usage = usage;
  return {std::move(r)};
}

inline model_replied code(const std::string& python) {
  return reply("Thought: go on.\n<code>\n" + python + "\n</code>");
}

inline snippet_done printed(std::string logs) {
  snippet_outcome x;
  x.logs = std::move(logs);
  return {std::move(x)};
}

inline snippet_done answered(json tagged, std::string text) {
  snippet_outcome x;
  x.is_final = true;
  x.result = value{std::move(tagged), std::move(text)};
  return {std::move(x)};
}

inline snippet_done ended(snippet_end end, std::string reason = {}) {
  snippet_outcome x;
  x.end = end;
  x.reason = std::move(reason);
  return {std::move(x)};
}

inline snippet_done raised(std::string type, std::string message, std::uint32_t line,
                           std::string logs = {}) {
  snippet_outcome x;
  x.end = snippet_end::raised;
  x.logs = std::move(logs);
  x.error = snippet_error{std::move(type), std::move(message), line, {}};
  return {std::move(x)};
}

/// One run and the commands of its last event.
class scripted_run {
public:
  /// Definitions are dear: runs of an agent that is used again share one.
  explicit scripted_run(const std::shared_ptr<const agent_definition>& definition = plain_agent())
    : agent{definition, openai_codec().encoder(), run_id{7}} {}

  explicit scripted_run(agent_options o) : scripted_run{definition_of(std::move(o))} {}

  scripted_run& on(const agent_event& e, time_point now = start_time) {
    commands = agent.on(e, now);
    return *this;
  }

  scripted_run& start(std::string task = "the task") {
    return on(run_started{std::move(task), {}});
  }

  /// The only command of that type in the last answer.
  template <class T>
  const T& the() const {
    const T* found = nullptr;
    for (auto& c : commands) {
      if (auto* x = std::get_if<T>(&c)) {
        REQUIRE(found == nullptr);
        found = x;
      }
    }
    REQUIRE(found != nullptr);
    return *found;
  }

  template <class T>
  bool has() const {
    for (auto& c : commands)
      if (std::holds_alternative<T>(c))
        return true;
    return false;
  }

  /// The commands of that type in the last answer, in order.
  template <class T>
  std::vector<T> all() const {
    std::vector<T> out;
    for (auto& c : commands)
      if (auto* x = std::get_if<T>(&c))
        out.push_back(*x);
    return out;
  }

  /// The payload of the note of that kind; null when there is none.
  json noted(std::string_view kind) const {
    for (auto& c : commands)
      if (auto* x = std::get_if<note>(&c); x != nullptr && x->kind == kind)
        return x->payload;
    return nullptr;
  }

  /// The messages of the last request.
  std::vector<json> request() const {
    auto list = json::parse("[" + std::string{the<ask_model>().request.messages.text()} + "]");
    return {list.begin(), list.end()};
  }

  std::string last_content() const { return request().back().at("content").get<std::string>(); }

  agent_machine agent;
  std::vector<agent_command> commands;
};

}  // namespace troupe::test

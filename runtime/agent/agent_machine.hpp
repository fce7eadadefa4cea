#pragma once
// The loop of one run, of whatever kind of agent: what the actor, a replay and a test drive.

#include "runtime/agent/code_agent.hpp"
#include "runtime/agent/tool_agent.hpp"

#include <memory>
#include <variant>
#include <vector>

namespace troupe {

/// Events and the time in, commands out. Value: a copy is a branch. Another kind of agent is one
/// more class with the same members, one more alternative here.
class agent_machine {
public:
  /// `start` is a copy of `react_loop::start_of(definition, encode)`, with which the runs of one
  /// agent share the bytes of their system prompt; `encode` is the endpoint's message encoder.
  agent_machine(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                transcript start, run_id run);

  /// The same with a conversation of its own.
  agent_machine(const std::shared_ptr<const agent_definition>& definition, message_encoder encode,
                run_id run);

  /// Takes one event, returns what to do now, in order. Events that do not fit the state are
  /// ignored and have no commands; after `finish` all are.
  [[nodiscard]] std::vector<agent_command> on(const agent_event& event, time_point now);

  [[nodiscard]] bool finished() const noexcept { return loop().finished(); }

  /// As react_loop's.
  [[nodiscard]] std::uint32_t step() const noexcept { return loop().step(); }
  [[nodiscard]] time_point deadline() const noexcept { return loop().deadline(); }
  [[nodiscard]] const transcript& messages() const noexcept { return loop().messages(); }

private:
  using any_kind = std::variant<code_agent, tool_agent>;
  static any_kind make(std::shared_ptr<const agent_definition> definition, message_encoder encode,
                       transcript start, run_id run);
  [[nodiscard]] const react_loop& loop() const noexcept;

  any_kind kind_;
};

}  // namespace troupe

#include "runtime/agent/agent_machine.hpp"

#include <utility>

namespace troupe {

agent_machine::any_kind agent_machine::make(std::shared_ptr<const agent_definition> definition,
                                            message_encoder encode, transcript start, run_id run) {
  if (definition->options.kind == agent_kind::tool_calling)
    return tool_agent{std::move(definition), encode, std::move(start), run};
  return code_agent{std::move(definition), encode, std::move(start), run};
}

agent_machine::agent_machine(std::shared_ptr<const agent_definition> definition,
                             message_encoder encode, transcript start, run_id run)
  : kind_{make(std::move(definition), encode, std::move(start), run)} {}

agent_machine::agent_machine(const std::shared_ptr<const agent_definition>& definition,
                             message_encoder encode, run_id run)
  : agent_machine{definition, encode, react_loop::start_of(*definition, encode), run} {}

std::vector<agent_command> agent_machine::on(const agent_event& event, time_point now) {
  return std::visit([&](auto& kind) { return kind.on(event, now); }, kind_);
}

const react_loop& agent_machine::loop() const noexcept {
  return std::visit([](auto& kind) -> const react_loop& { return kind; }, kind_);
}

}  // namespace troupe

#pragma once
// The ReAct loop of an agent that acts by calling tools, as a pure state machine: an event and the
// time in, commands out. No I/O, no clock, no CAF.

#include "runtime/agent/call_parser.hpp"
#include "runtime/agent/react_loop.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One run. Value: a copy is a branch.
/// All calls of a reply are out at once, and are answered together, in the order in which the model
/// made them. The answer is the result of a tool that ends the run, called alone: beside other
/// calls it is refused, since the model has not seen their results yet.
class tool_agent : public react_loop {
public:
  /// `start` is a copy of `start_of(definition, encode)`; `encode` is the endpoint's message
  /// encoder.
  tool_agent(std::shared_ptr<const agent_definition> definition, message_encoder encode,
             transcript start, run_id run);

  /// Takes one event, returns what to do now, in order. Events that do not fit the state (the
  /// answer of a call that is not out) are ignored. After `finish` it always returns nothing.
  /// Notes   "action" {step, source, calls: [{tool, id?, call?, refused?}]}, where source is
  ///         native or text; "observation" and "final_answer" as a code agent's.
  [[nodiscard]] std::vector<agent_command> on(const agent_event& event, time_point now);

private:
  /// One call of the turn, from the reply to what the model reads of it.
  struct open_call {
    call_id id{};           ///< ours; 0: it is not carried out
    std::string wire_id{};  ///< the model's, told apart within its turn; empty in text
    std::string tool{};
    std::string arguments{};  ///< as the model wrote them
    std::string text{};       ///< what the model reads
    std::optional<value> answer{};
    bool ends_run = false;
    bool out = false;
    bool failed = false;
  };

  using react_loop::take;
  void take(const model_replied& e, time_point now, commands& out);
  void take(const tool_replied& e, time_point now, commands& out);

  void act(const model_reply& reply, commands& out);
  void answer(const model_reply& reply, commands& out);
  [[nodiscard]] parsed_calls read(const model_reply& reply) const;
  [[nodiscard]] parsed_calls read_text(std::string_view text) const;
  [[nodiscard]] std::string why_too_much(const std::vector<tool_call_message>& native,
                                         std::size_t written) const;
  void remember(const model_reply& reply, const std::vector<wanted_call>& calls);
  void begin(std::vector<wanted_call> wanted, commands& out);
  [[nodiscard]] json open(open_call& call, wanted_call& wanted, bool alone, commands& calls);
  [[nodiscard]] error why_refused(const open_call& call, const std::string& broken,
                                  bool alone) const;

  void settle(open_call& call, const result<json>& outcome);
  void refuse(open_call& call, const error& why) const;
  void end_turn(commands& out);
  void answer_by_call(open_call& call, commands& out);
  void tell_results(std::string_view nudge);
  [[nodiscard]] std::string observation() const;
  [[nodiscard]] const tool_spec* ending_tool(std::string_view name) const;

  std::vector<open_call> calls_;  ///< of this turn; empty while the model is asked
  std::uint64_t last_call_ = 0;
  bool by_text_ = false;  ///< this turn's calls stand in the reply's text
  bool forced_ = false;   ///< this turn's call is the forced answer
};

}  // namespace troupe

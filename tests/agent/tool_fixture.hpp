#pragma once
// What tests of the tool-calling agent say in the model's and the tools' place.

#include "tests/agent/agent_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

inline tool_spec search_spec() {
  tool_spec spec;
  spec.name = "search";
  spec.description = "Finds pages.";
  spec.parameters = ordered_json::parse(
    R"({"type":"object","properties":{"query":{"type":"string"}},"required":["query"]})");
  return spec;
}

/// An agent with the tools final_answer and search.
inline agent_options tool_options(call_protocol protocol = call_protocol::native) {
  auto o = options_for_tests();
  o.kind = agent_kind::tool_calling;
  o.prompts = shipped_prompts(o.kind);
  o.tools.push_back(search_spec());
  o.calls = protocol;
  return o;
}

/// The agents of tool_options().
inline const std::shared_ptr<const agent_definition>&
plain_tool_agent(call_protocol protocol = call_protocol::native) {
  static const auto native = definition_of(tool_options());
  static const auto text = definition_of(tool_options(call_protocol::text));
  return protocol == call_protocol::native ? native : text;
}

inline tool_call_message call(std::string id, std::string name, std::string arguments) {
  return {std::move(id), std::move(name), std::move(arguments), {}};
}

inline model_replied calls(std::vector<tool_call_message> all, std::string text = {}) {
  model_reply r;
  r.text = std::move(text);
  r.tool_calls = std::move(all);
  r.finish_reason = "tool_calls";
  return {std::move(r)};
}

inline model_replied search_for(const std::string& what, std::string id = "c1") {
  return calls({call(std::move(id), "search", json{{"query", what}}.dump())});
}

inline model_replied answer_call(const json& answer) {
  return calls({call("end", "final_answer", json{{"answer", answer}}.dump())});
}

inline tool_replied returned(std::uint64_t id, json value) {
  return {call_id{id}, std::move(value)};
}

inline tool_replied failed(std::uint64_t id, std::string why, errc code = errc::internal) {
  return {call_id{id}, fail(code, std::move(why))};
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace troupe::test

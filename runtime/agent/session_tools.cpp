#include "runtime/agent/session_tools.hpp"

#include "runtime/agent/python_name.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

tool_spec letter_tool(std::string name, std::string description, const std::string& receiver,
                      const std::string& receiver_text, const std::vector<std::string>& choices) {
  tool_spec tool;
  tool.name = std::move(name);
  tool.description = std::move(description);
  tool.parameters = {
    {"type", "object"},
    {"properties",
     {{receiver, {{"type", "string"}, {"description", receiver_text}, {"enum", choices}}},
      {"message",
       {{"type", "string"},
        {"description", "The whole text: it is read without what was said before."}}}}},
    {"required", {receiver, "message"}}};
  tool.output_type = "string";
  return tool;
}

std::string directory(const std::vector<session_member_card>& members, const std::string& self) {
  std::string out;
  for (auto& m : members)
    if (m.name != self)
      out += "\n" + m.name + (m.description.empty() ? "" : ": " + m.description);
  return out;
}

}  // namespace

std::vector<tool_spec> session_tools(const std::vector<session_member_card>& members,
                                     const std::string& self) {
  std::vector<std::string> others;
  std::set<std::string> topics;
  for (auto& m : members)
    if (m.name != self) {
      others.push_back(m.name);
      topics.insert(m.topics.begin(), m.topics.end());
    }
  if (others.empty())
    return {};
  auto who = "Another agent. There are:" + directory(members, self);
  std::vector<tool_spec> out{
    letter_tool("send_message",
                "Sends another agent a message and goes on at once. No answer comes back.", "to",
                who, others),
    letter_tool("ask_agent", "Asks another agent and waits for its answer, which is the result.",
                "to", who, others),
    letter_tool("hand_off",
                "Hands your task over to another agent, and ends your work on it: whatever that "
                "agent answers goes to whoever gave you the task.",
                "to", who, others)};
  out[1].own_time = true;
  out[2].ends_run = true;
  if (!topics.empty())
    out.push_back(
      letter_tool("publish", "Sends a message to all agents that read a topic, and goes on.",
                  "topic", "A topic that somebody reads.", {topics.begin(), topics.end()}));
  return out;
}

result<void> validate(const std::vector<session_member_card>& members) {
  if (members.size() < 2)
    return fail(errc::invalid_argument, "a session needs at least two agents");
  for (auto& m : members) {
    if (!is_python_identifier(m.name) || is_python_keyword(m.name))
      return fail(errc::invalid_argument, "'" + m.name + "' is no name for an agent of a session");
    if (std::ranges::count(members, m.name, &session_member_card::name) > 1)
      return fail(errc::invalid_argument, "two agents of the session are named '" + m.name + "'");
  }
  return {};
}

}  // namespace troupe

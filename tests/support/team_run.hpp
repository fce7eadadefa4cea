#pragma once
// A manager and its agents, whose models say what a test has written down.

#include "runtime/agent/managed_agent.hpp"
#include "tests/support/run_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>

namespace troupe::test {

inline std::string call(const std::string& tool, const json& arguments) {
  return dump_json({{"name", tool}, {"arguments", arguments}});
}

inline std::string answer(const std::string& text) {
  return call("final_answer", {{"answer", text}});
}

inline std::string code(const std::string& text) {
  return "<code>\n" + text + "\n</code>";
}

inline agent_options member(const std::string& name) {
  agent_options o;
  o.kind = agent_kind::tool_calling;
  o.calls = call_protocol::text;
  o.name = name;
  o.description = "Knows about " + name + ".";
  o.max_steps = 3;
  return o;
}

inline agent_options manager_of(std::vector<agent_options> team, agent_kind kind) {
  auto o = member("manager");
  o.kind = kind;
  for (auto& agent : team)
    o.managed.push_back(managed_agent_tool(agent));
  return o;
}

/// What each agent's model says next.
using script = std::function<std::string(const std::string& who)>;

struct team_run : run_fixture {
  team_run(script says, std::vector<agent_options> team, agent_kind kind = agent_kind::tool_calling,
           snippet_script code = hang)
    : run_fixture{std::make_shared<scripted_endpoint>(
                    [says = std::move(says)](const model_request& r) { return says(name_in(r)); }),
                  std::move(code), manager_of(team, kind)} {
    std::tie(owner, ends) = collector<run_finished>();
    auto top = std::make_shared<agent_context>(*context);
    for (auto& options : team)
      top->team.push_back(member_of(std::move(options)));
    top->levels = 1;
    context = top;
  }

  static std::optional<snippet_outcome> hang(const snippet&) { return std::nullopt; }

  /// A managed agent's task begins with its name.
  static std::string name_in(const model_request& r) {
    auto text = r.messages.text();
    auto at = text.rfind("You are '");
    if (at == std::string::npos)
      return "manager";
    at += 9;
    return text.substr(at, text.find('\'', at) - at);
  }

  managed_agent member_of(agent_options options) {
    options.prompts = shipped_prompts(options.kind);
    options.tools = tools->specs();
    auto c = std::make_shared<agent_context>(*context);
    c->agent = prepare(std::move(options));
    c->start = react_loop::start_of(*c->agent, c->encode);
    auto made = make_managed_agent(std::move(c));
    REQUIRE(made);
    return *made;
  }

  void start() {
    agent = spawn_agent(sys, context, {run_id{1000}, "s1", {}, owner});
    glue::post(agent, run_start{{"Find it out.", {}}});
    deliver();
  }

  const finish& end() {
    REQUIRE(ends->size() == 1);
    return ends->front().end;
  }

  /// The observations that the manager's model was given, in order.
  [[nodiscard]] std::string observations() const {
    std::string out;
    for (auto& e : journal->events)
      if (e.kind == "observation" && e.run == run_id{1000})
        out += string_or(json::parse(e.payload), "text") + "\n";
    return out;
  }

  caf::actor owner;
  std::shared_ptr<std::vector<run_finished>> ends;
  caf::actor agent;
};

/// Says its lines one after the other, for each agent by itself.
inline script lines(std::map<std::string, std::vector<std::string>> by_name) {
  auto left = std::make_shared<std::map<std::string, std::vector<std::string>>>(by_name);
  return [left](const std::string& who) {
    auto& mine = (*left)[who];
    if (mine.empty())
      return std::string{"nothing more to say"};
    auto next = mine.front();
    mine.erase(mine.begin());
    return next;
  };
}

}  // namespace troupe::test

#include "config/agent_file.hpp"
#include "config/agent_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of these the file may speak: not of a batch, its output, or how replies are kept.
bool is_of_agent_files(const option_spec& row) {
  return (row.group == "Model" || row.is_of_agents() || row.group == "Sandbox")
         && row.name != "agent" && row.name != "limits_file" && row.type != option_type::map;
}

std::string described(std::string_view help, std::string_view key, std::string_view fallback,
                      std::string_view indent = "") {
  return fmt::format("{}# {}\n{}# {}:{}{}\n", indent, help, indent, key,
                     fallback.empty() ? "" : " ", fallback);
}

std::string group_of(std::string_view name) {
  std::string out = fmt::format("\n# --- {} ---\n", name);
  for (const auto& row : option_table())
    if (row.group == name && contains(agent_keys(), row.name) && row.name != "prompts")
      out += described(row.help, row.name, row.takes_several() ? "[]" : row.fallback);
  return out;
}

}  // namespace

const std::vector<std::string_view>& agent_limits() {
  static const std::vector<std::string_view> names{"max_steps",  "run_time",     "step_time",
                                                   "step_grace", "token_budget", "call_budget",
                                                   "cost_budget"};
  return names;
}

const std::vector<std::string_view>& agent_keys() {
  static const auto names = [] {
    std::vector<std::string_view> out{"name", "description", "kind"};
    for (const auto& row : option_table())
      if (is_of_agent_files(row) && !contains(agent_limits(), row.name))
        out.push_back(row.name);
    out.insert(out.end(), {"limits", "children"});
    return out;
  }();
  return names;
}

bool is_agent_key(std::string_view key) {
  return contains(agent_keys(), key);
}

bool is_agent_limit(std::string_view key) {
  return contains(agent_limits(), key);
}

const option_spec* agent_option(std::string_view key) {
  if (key == "kind")
    return find_option("agent");
  return is_agent_key(key) ? find_option(key) : nullptr;
}

std::string agent_file_template(const std::string& name) {
  auto out = fmt::format(
    "# An agent: troupe run -a FILE \"task\", troupe eval -a FILE data.jsonl.\n"
    "# Every key stands here with its meaning and what holds when it is not set. Flags and\n"
    "# variables win over this file, and this file over troupe.yaml. Files that it names are "
    "beside it.\n\n"
    "# how it is called by other agents: a Python identifier\nname: {}\n"
    "# what it is good for, for an agent that may call it\n# description:\n"
    "# {}\nkind: {}\n",
    name, find_option("agent")->help, find_option("agent")->fallback);
  out += group_of("Agent");
  out += group_of("Prompts and context");
  out += "# its prompts: a YAML file, or texts (Jinja) here; those that are not given are the\n"
         "# shipped ones, of which config/prompts has the names and the variables\n"
         "# prompts:\n#   system_prompt: |\n#     You are ... {{task}}\n"
         "#   final_answer:\n#     pre_messages: |\n#     post_messages: |\n"
         "# limits of one run\nlimits:\n";
  for (auto limit : agent_limits())
    out += fmt::format("  # {}\n  {}: {}\n", find_option(limit)->help, limit,
                       find_option(limit)->fallback);
  out += "# agents that it may call: their files\nchildren: []\n";
  return out + group_of("Model") + group_of("Sandbox");
}

}  // namespace troupe

#include "runtime/host/smolagents_import.hpp"

#include "config/options.hpp"
#include "config/yaml_mapping.hpp"
#include "runtime/agent/agent_options.hpp"
#include "runtime/agent/python_name.hpp"
#include "runtime/core/json.hpp"
#include "tools/tool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t deepest = 16;  // managed agents within managed agents

/// A model's class of smolagents, and the provider that stands for it here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> providers{{
  {"InferenceClientModel", "hf"},
  {"HfApiModel", "hf"},
  {"OpenAIServerModel", "openai"},
  {"OpenAIModel", "openai"},
  {"AzureOpenAIServerModel", "azure"},
  {"AzureOpenAIModel", "azure"},
  {"VLLMModel", "vllm"},
  {"LiteLLMModel", ""},  // its names have their provider in front
}};

/// Why what has no place in an agent file has none; empty: it is nothing that matters here.
std::string_view reason_for(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> reasons{{
    {"planning_interval", "this version does not plan"},
    {"executor_type", "code runs in troupe's own executors; see --executor"},
    {"executor_kwargs", "they are those of another executor"},
    {"max_print_outputs_length", "the profile's shown_output cuts what code prints"},
    {"requirements", "packages are those of the sandbox's root; see profiles"},
    {"grammar", "it is no part of an agent here"},
    {"verbosity_level", ""},
  }};
  for (auto& [name, why] : reasons)
    if (name == key)
      return why;
  return "it is not known";
}

/// A JSON text is a YAML text too.
std::string yaml_of(const json& value) {
  return dump_json(value);
}

class importer {
public:
  importer(imported_agent& out, const fs::path& top) : out_{out} {
    std::error_code ec;
    open_.insert(fs::canonical(top, ec));
  }

  /// Returns the name of the file.
  result<std::string> take(const fs::path& folder, const std::string& usual_name,
                           std::size_t depth) {
    auto text = read_small_file(folder / "agent.json");
    if (!text)
      return fail(text.error());
    auto parsed = parse_json(*text);
    if (!parsed || !parsed->is_object())
      return fail(errc::invalid_argument,
                  fmt::format("{}: is no JSON object{}", (folder / "agent.json").string(),
                              parsed ? "" : ": " + parsed.error().detail));
    auto& a = *parsed;
    auto name = name_of(a, folder, usual_name);
    std::string yaml = "# From smolagents: " + (folder / "agent.json").string() + "\n";
    yaml += "name: " + name + "\n";
    if (a.contains("description") && a["description"].is_string())
      yaml += "description: " + yaml_of(a["description"]) + "\n";
    auto kind = kind_of(a, folder);
    yaml += "kind: " + kind + "\n" + model_of(a, folder) + tools_of(a, folder);
    if (auto imports = a.find("authorized_imports"); imports != a.end() && imports->is_array())
      yaml += "imports: " + yaml_of(*imports) + "\n";
    if (auto steps = a.find("max_steps"); steps != a.end() && steps->is_number_unsigned())
      yaml += "limits:\n  max_steps: " + yaml_of(*steps) + "\n";
    yaml += prompts_of(folder, name, kind);
    auto children = children_of(a, folder, depth);
    if (!children)
      return fail(children.error());
    yaml += *children;
    name_the_rest(a, folder);
    auto file = name + ".yaml";
    out_.files.emplace_back(file, std::move(yaml));
    return file;
  }

private:
  void leave_out(const fs::path& folder, std::string_view what, std::string_view why) {
    out_.left_out.push_back(fmt::format("{}: {}: {}", folder.string(), what, why));
  }

  std::string name_of(const json& a, const fs::path& folder, const std::string& usual) {
    auto name = string_or(a, "name", usual);
    auto usable = is_python_identifier(name) && !is_python_keyword(name) && !is_python_builtin(name)
                  && names_.insert(name).second;
    if (usable)
      return name;
    for (auto number = 1;; ++number)
      if (auto other = "agent_" + std::to_string(number); names_.insert(other).second) {
        leave_out(folder, "name",
                  fmt::format("'{}' cannot be one, or is taken; it is {} now", name, other));
        return other;
      }
  }

  std::string kind_of(const json& a, const fs::path& folder) {
    auto name = string_or(a, "class");
    if (name != "CodeAgent" && name != "ToolCallingAgent")
      leave_out(folder, "class",
                "'" + name
                  + "' is neither CodeAgent nor ToolCallingAgent; it "
                    "is taken for the first");
    return name == "ToolCallingAgent" ? "tool" : "code";
  }

  std::string model_of(const json& a, const fs::path& folder) {
    auto model = a.value("model", json::object());
    auto data = model.is_object() ? model.value("data", json::object()) : json::object();
    auto type = string_or(model, "class");
    auto id = data.is_object() ? string_or(data, "model_id") : "";
    auto known =
      std::find_if(providers.begin(), providers.end(), [&](auto& p) { return p.first == type; });
    if (known == providers.end() || id.empty()) {
      leave_out(folder, "model",
                "'" + type + "' has no provider here; give --model provider/model");
      return "";
    }
    std::string out =
      "model: " + yaml_of(known->second.empty() ? id : std::string{known->second} + "/" + id)
      + "\n";
    if (auto base = string_or(data, "api_base"); !base.empty())
      out += "base_url: " + yaml_of(base) + "\n";
    for (const auto* setting : {"temperature", "max_tokens", "seed"})
      if (data.contains(setting) && data[setting].is_number())
        out += fmt::format("{}: {}\n", setting, yaml_of(data[setting]));
    return out;
  }

  std::string tools_of(const json& a, const fs::path& folder) {
    std::string list;
    for (const auto& t : a.value("tools", json::array())) {
      auto name = t.is_string() ? t.get<std::string>() : string_or(t, "name");
      if (name == "final_answer")
        continue;  // always there
      if (builtin_tool(name))
        list += (list.empty() ? "" : ", ") + name;
      else
        leave_out(folder, "tools/" + name + ".py",
                  "Python source is not carried over; a C++ program can register a tool of this "
                  "name (docs/embedding.md)");
    }
    return "tools: [" + list + "]\n";
  }

  /// Those whose templates can be rendered here.
  std::string prompts_of(const fs::path& folder, const std::string& name, const std::string& kind) {
    auto text = read_small_file(folder / "prompts.yaml");
    if (!text) {
      leave_out(folder, "prompts.yaml", text.error().detail);
      return "";
    }
    auto file = name + ".prompts.yaml";
    auto given = load_given_prompts(*text, "prompts.yaml");
    agent_options tried;
    tried.kind = kind == "tool" ? agent_kind::tool_calling : agent_kind::code;
    tried.tools = {final_answer_tool().spec};
    auto fits = given.and_then([&](const given_prompts& g) {
      tried.prompts = g.over(shipped_prompts(tried.kind));
      return validate(tried);
    });
    if (!fits) {
      leave_out(folder, "prompts.yaml",
                (given ? given->placed(fits.error().detail) : fits.error().detail)
                  + "; the shipped ones are used");
      return "";
    }
    out_.files.emplace_back(file, *std::move(text));
    return "prompts: " + file + "\n";
  }

  /// By name: what `save` writes is an object of name and class.
  result<std::string> children_of(const json& a, const fs::path& folder, std::size_t depth) {
    std::string list;
    auto managed = a.value("managed_agents", json::object());
    for (auto it = managed.begin(); managed.is_object() && it != managed.end(); ++it) {
      if (!is_python_identifier(it.key()) || depth >= deepest) {
        leave_out(folder, "managed_agents", "'" + it.key() + "' is no name, or too deep");
        continue;
      }
      auto below = folder / "managed_agents" / it.key();
      std::error_code ec;
      auto real = fs::canonical(below, ec);
      if (!ec && !open_.insert(real).second) {
        leave_out(folder, "managed_agents", "'" + it.key() + "' leads back to a folder around it");
        continue;
      }
      auto child = take(below, it.key(), depth + 1);
      open_.erase(real);
      if (!child)
        return child;
      list += "  - " + *child + "\n";
    }
    return list.empty() ? list : "children:\n" + list;
  }

  void name_the_rest(const json& a, const fs::path& folder) {
    static const std::set<std::string_view> taken{
      "class", "tools",       "managed_agents",    "model", "prompt_templates", "max_steps",
      "name",  "description", "authorized_imports"};
    for (auto it = a.begin(); it != a.end(); ++it)
      if (!taken.contains(it.key()) && !it->is_null())
        if (auto why = reason_for(it.key()); !why.empty())
          leave_out(folder, it.key(), why);
  }

  imported_agent& out_;
  std::set<std::string> names_;
  std::set<fs::path> open_;  ///< the folders around this one, itself included
};

}  // namespace

result<imported_agent> import_smolagents(const std::string& folder) {
  imported_agent out;
  auto main = importer{out, folder}.take(folder, "agent", 1);
  if (!main)
    return fail(main.error());
  out.main = *std::move(main);
  return out;
}

}  // namespace troupe

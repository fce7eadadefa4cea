// Reading prompt files; yaml-cpp stays in here.
#include "runtime/agent/prompt.hpp"
#include "runtime/core/text.hpp"

#include <yaml-cpp/yaml.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace troupe {

/// The shipped files' texts; their definitions are generated from config/prompts at build time.
extern const std::string_view shipped_code_prompts;
extern const std::string_view shipped_tool_prompts;
extern const std::string_view shipped_structured_texts;

namespace {

struct prompt_key {
  std::string_view section;  ///< empty: top level
  std::string_view key;
  std::string prompt_set::*text;
  bool needed;
};

constexpr std::array<prompt_key, 9> prompt_keys{{
  {"", "system_prompt", &prompt_set::system_prompt, true},
  {"final_answer", "pre_messages", &prompt_set::final_answer_pre, true},
  {"final_answer", "post_messages", &prompt_set::final_answer_post, true},
  {"planning", "initial_plan", &prompt_set::initial_plan, false},
  {"planning", "update_plan_pre_messages", &prompt_set::update_plan_pre, false},
  {"planning", "update_plan_post_messages", &prompt_set::update_plan_post, false},
  {"managed_agent", "task", &prompt_set::managed_task, false},
  {"managed_agent", "report", &prompt_set::managed_report, false},
  {"context", "summary", &prompt_set::context_summary, false},
}};

std::string full_name(std::string_view section, std::string_view key) {
  return section.empty() ? std::string{key} : std::string{section} + "." + std::string{key};
}

std::string place_of(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file
                        : file + ", line " + std::to_string(mark.line + 1) + ", column "
                            + std::to_string(mark.column + 1);
}

std::vector<std::string_view> keys_of(std::string_view section) {
  std::vector<std::string_view> names;
  for (auto& k : prompt_keys) {
    if (k.section == section)
      names.push_back(k.key);
    else if (section.empty() && (names.empty() || names.back() != k.section))
      names.push_back(k.section);
  }
  return names;
}

bool is_section(std::string_view name) {
  for (auto& k : prompt_keys)
    if (!name.empty() && k.section == name)
      return true;
  return false;
}

/// One file's texts as they fill up.
class prompt_reader {
public:
  explicit prompt_reader(std::string file) : file_{std::move(file)} {}

  result<void> read(std::string_view section, const YAML::Node& map) {
    if (!map.IsMap())
      return bad(map.Mark(), (section.empty() ? "the file" : std::string{section})
                               + " must be a mapping of names to texts");
    for (auto entry : map) {
      auto key = entry.first.IsScalar() ? entry.first.as<std::string>() : std::string{};
      auto ok = section.empty() && is_section(key) ? read(key, entry.second)
                                                   : read_entry(section, key, entry);
      if (!ok)
        return ok;
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<error> bad(const YAML::Mark& mark, const std::string& what) const {
    return fail(errc::invalid_argument, place_of(file_, mark) + ": " + what);
  }

  given_prompts out;

private:
  template <class Entry>
  result<void> read_entry(std::string_view section, const std::string& key, const Entry& entry) {
    auto name = full_name(section, key);
    auto mark = entry.first.Mark();
    for (auto& k : prompt_keys) {
      if (k.section != section || k.key != key)
        continue;
      if (!entry.second.IsScalar())
        return bad(entry.second.Mark(), name + " must be a text");
      out.texts.*k.text = entry.second.template as<std::string>();
      out.places.emplace_back(name, file_ + ", line " + std::to_string(mark.line + 1));
      return {};
    }
    return bad(mark, "unknown key '" + name + "'" + did_you_mean(key, keys_of(section)));
  }

  std::string file_;
};

prompt_set shipped(std::string_view text, prompt_set base = {}) {
  auto loaded = load_prompts(text, std::move(base));
  if (!loaded)
    throw std::logic_error("the shipped prompts are broken: " + loaded.error().detail);
  return *std::move(loaded);
}

}  // namespace

prompt_set given_prompts::over(prompt_set usual) const {
  for (auto& k : prompt_keys)
    if (std::ranges::any_of(
          places, [&](auto& given) { return given.first == full_name(k.section, k.key); }))
      usual.*k.text = texts.*k.text;
  return usual;
}

std::string given_prompts::placed(const std::string& detail) const {
  auto is_its = [&](auto& place) {
    auto& key = place.first;
    return detail.starts_with(key) && detail.find_first_of(",:", key.size()) == key.size();
  };
  auto place = std::ranges::find_if(places, is_its);
  return place == places.end() ? detail : place->second + ": " + detail;
}

result<given_prompts> load_given_prompts(std::string_view yaml_text, const std::string& file) {
  prompt_reader reader{file};
  try {
    if (auto ok = reader.read("", YAML::Load(std::string{yaml_text})); !ok)
      return fail(ok.error());
  } catch (const YAML::Exception& e) {
    return reader.bad(e.mark, e.msg);
  }
  return std::move(reader.out);
}

result<prompt_set> load_prompts(std::string_view yaml_text, prompt_set base) {
  auto given = load_given_prompts(yaml_text, "prompts");
  if (!given)
    return fail(given.error());
  auto out = given->over(std::move(base));
  for (auto& k : prompt_keys)
    if (k.needed && trim(out.*k.text).empty())
      return fail(errc::invalid_argument,
                  "prompts: key '" + full_name(k.section, k.key) + "' is missing or empty");
  return out;
}

const prompt_set& shipped_prompts(agent_kind kind) {
  static const auto for_code = shipped(shipped_code_prompts);
  static const auto for_tools = shipped(shipped_tool_prompts);
  return kind == agent_kind::code ? for_code : for_tools;
}

const prompt_set& shipped_structured_prompts() {
  static const auto made = shipped(shipped_structured_texts, shipped_prompts(agent_kind::code));
  return made;
}

}  // namespace troupe

#include "runtime/cli/arguments.hpp"

#include "config/agent_file.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/core/log.hpp"
#include "runtime/core/text.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>

extern char** environ;

namespace troupe::cli {
namespace {

/// One option as the command line gave it.
struct seen_option {
  std::vector<std::string> words;
  std::string flag;  ///< of a boolean: true, or the word behind `=`
  CLI::Option* option = nullptr;
};

void add_option(CLI::App& app, const option_spec& spec, seen_option& seen) {
  auto flags = flag_of(spec);
  if (!spec.short_flag.empty())
    flags = std::string{spec.short_flag} + "," + flags;
  auto help = std::string{spec.help};
  if (!spec.fallback.empty())
    help += " [" + std::string{spec.fallback} + "]";
  auto group = std::string{spec.group};
  if (spec.type == option_type::boolean) {
    // A flag takes a word only behind `=`: what follows it is the task or the dataset.
    seen.option = app.add_flag(flags, seen.flag, help)->group(group);
    return;
  }
  seen.option = app.add_option(flags, seen.words, help)->group(group);
  switch (spec.type) {
  case option_type::list:
  case option_type::paths:
  case option_type::map:
    seen.option->allow_extra_args(false)->expected(1)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
    break;
  default:
    // One word each: what follows it is the task or the dataset.
    seen.option->allow_extra_args(false)->expected(1)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  }
}

/// "--max-concurency" is not an option: says so, with the nearest.
std::string unknown_option(const std::string& word, command which) {
  std::vector<std::string> flags;
  for (const auto& spec : option_table())
    if (spec.belongs_to(which))
      flags.push_back(flag_of(spec));
  for (const char* own : {"--config", "--agent-file", "--explain", "--help"})
    flags.emplace_back(own);
  auto name = word.substr(0, word.find('='));
  return "there is no option '" + name + "'" + did_you_mean(name, {flags.begin(), flags.end()});
}

void warn_about_variables() {
  std::vector<std::string> names;
  for (auto** e = environ; *e != nullptr; ++e) {
    std::string entry{*e};
    if (entry.starts_with("TROUPE_"))
      names.push_back(entry.substr(0, entry.find('=')));
  }
  for (const auto& w : unknown_variables(names, {"TROUPE_DEPS", "TROUPE_CAF_TARBALL"}))
    std::fprintf(stderr, "troupe: %s\n", w.c_str());
}

}  // namespace

parsed_arguments parse_arguments(command which, const std::string& name, const std::string& help,
                                 const std::string& rest_name, const std::string& rest_help,
                                 const std::vector<std::string>& given) {
  CLI::App app{help, "troupe " + name};
  arguments out;
  std::string config, agent;
  std::map<std::string, seen_option> seen;
  app.add_option(rest_name, out.rest, rest_help);
  app.add_option("--config", config, "options from this YAML file [./troupe.yaml, if it is there]");
  if (which != command::mock)
    app.add_option("-a,--agent-file", agent,
                   "the agent, as this YAML file describes it (see troupe init)");
  app.add_flag("--explain", out.explain, "show every option with its value and where it came from");
  for (const auto& spec : option_table())
    if (spec.belongs_to(which))
      add_option(app, spec, seen[std::string{spec.name}]);
  app.allow_extras();

  try {
    std::vector<std::string> reversed{given.rbegin(), given.rend()};  // as CLI11 wants it
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return {std::nullopt, done};
  } catch (const CLI::ParseError& e) {
    return {std::nullopt,
            complain(usage, std::string{e.what()} + "; see troupe " + name + " --help")};
  }
  if (auto extra = app.remaining(); !extra.empty())
    return {std::nullopt, complain(usage, unknown_option(extra.front(), which))};

  std::vector<option_input> flags;
  for (const auto& [option, s] : seen)
    if (s.option->count() > 0) {
      auto values = s.flag.empty() ? s.words : std::vector{s.flag};
      flags.push_back({option, std::move(values), flag_of(*find_option(option))});
    }
  auto file = read_config(config);
  if (!file)
    return {std::nullopt, complain(usage, file.error().detail)};
  std::shared_ptr<const agent_file> described;
  if (!agent.empty()) {
    auto read = read_agent_file(agent);
    if (!read)
      return {std::nullopt, complain(usage, read.error().detail)};
    described = *std::move(read);
    file->insert(file->end(), described->options.begin(), described->options.end());
  }
  auto resolved = resolve(which, *file, process_environment(), flags);
  if (!resolved)
    return {std::nullopt, complain(usage, resolved.error().detail)};
  resolved->agent.file = std::move(described);
  warn_about_variables();
  out.options = std::move(*resolved);
  log::set_level(log::level_from(out.options.output.log_level, log::level::warn));
  return {std::move(out), done};
}

}  // namespace troupe::cli

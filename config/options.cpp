#include "config/options.hpp"

#include "config/option_value.hpp"
#include "runtime/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace troupe {
namespace {

std::vector<std::string_view> names_for(std::uint8_t commands) {
  std::vector<std::string_view> names;
  for (const auto& row : option_table())
    if ((row.commands & commands) != 0)
      names.push_back(row.name);
  return names;
}

/// Where the input stands and, when that does not say so itself, which option it is.
std::string place_of(const option_input& in, value_origin origin) {
  return origin == value_origin::file ? in.where + ": " + in.name : in.where;
}

result<const option_spec*> row_of(const option_input& in) {
  if (const auto* row = find_option(in.name))
    return row;
  return fail(errc::invalid_argument, fmt::format("{}: unknown option '{}'{}", in.where, in.name,
                                                  did_you_mean(in.name, names_for(0xFF))));
}

/// A value that was written where a variable's name belongs is likely the key itself: never shown.
bool is_variable_name(std::string_view text) {
  auto ok = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0
         && std::all_of(text.begin(), text.end(), ok) && !text.starts_with("sk_")
         && !text.starts_with("hf_");
}

result<option_value> checked(const option_spec& row, const option_input& in, value_origin origin) {
  auto value = parse_option(row, in.words);
  if (!value)
    return fail(errc::invalid_argument, place_of(in, origin) + ": " + value.error().detail);
  if (row.name == "api_key_env" && !is_variable_name(std::get<std::string>(*value)))
    return fail(
      errc::invalid_argument,
      place_of(in, origin)
        + ": takes the name of an environment variable, e.g. OPENAI_API_KEY, not the key");
  return value;
}

/// The settings as they fill up, one source after the other.
class resolution {
public:
  explicit resolution(command c) : command_{c} {
    for (const auto& row : option_table())
      if (row.belongs_to(c))
        out_.explained.push_back(
          {std::string{row.name}, std::string{row.fallback}, value_origin::fallback, "default"});
  }

  result<void> take(const option_input& in, value_origin origin) {
    auto row = row_of(in);
    if (!row)
      return fail(row.error());
    auto value = checked(**row, in, origin);
    if (!value)
      return fail(value.error());
    if (!(*row)->belongs_to(command_))
      return refuse_foreign(in, origin);
    (*row)->assign(out_, *value);
    auto text = in.words.empty() ? "true" : fmt::format("{}", fmt::join(in.words, ","));
    auto& line = *std::find_if(out_.explained.begin(), out_.explained.end(),
                               [&](const explained_option& x) { return x.name == in.name; });
    line = {in.name, text, origin, in.where};
    return {};
  }

  result<void> take_all(const std::vector<option_input>& inputs, value_origin origin) {
    for (const auto& in : inputs)
      if (auto done = take(in, origin); !done)
        return done;
    return {};
  }

  result<void> take_defaults() {
    for (const auto& row : option_table())
      if (row.belongs_to(command_) && !row.fallback.empty()) {
        auto value = parse_option(row, {std::string{row.fallback}});
        if (!value)
          return fail(errc::internal, std::string{row.name} + ": default " + value.error().detail);
        row.assign(out_, *value);
      }
    return {};
  }

  result<void> take_environment(const env_lookup& env) {
    for (const auto& row : option_table()) {
      auto name = variable_of(row);
      auto text = row.belongs_to(command_) && env ? env(name) : std::nullopt;
      if (!text || text->empty())
        continue;
      if (auto done = take({std::string{row.name}, {*text}, name}, value_origin::environment);
          !done)
        return done;
    }
    return {};
  }

  settings finish() { return std::move(out_); }

private:
  /// One file serves all commands, so there a foreign option is fine; as a flag it is a mistake.
  static result<void> refuse_foreign(const option_input& in, value_origin origin) {
    if (origin != value_origin::flag)
      return {};
    return fail(errc::invalid_argument, in.where + ": is not an option of this command");
  }

  command command_;
  settings out_;
};

std::string_view to_string(value_origin origin) {
  constexpr std::array<std::string_view, 4> names = {"default", "file", "environment", "flag"};
  return names[static_cast<std::size_t>(origin)];
}

}  // namespace

result<void> assign(settings& into, const option_input& in) {
  auto row = row_of(in);
  if (!row)
    return fail(row.error());
  auto value = checked(**row, in, value_origin::file);
  if (!value)
    return fail(value.error());
  (*row)->assign(into, *value);
  return {};
}

result<settings> resolve(command for_command, const std::vector<option_input>& file,
                         const env_lookup& env, const std::vector<option_input>& flags) {
  resolution r{for_command};
  if (auto done = r.take_defaults(); !done)
    return fail(done.error());
  if (auto done = r.take_all(file, value_origin::file); !done)
    return fail(done.error());
  if (auto done = r.take_environment(env); !done)
    return fail(done.error());
  if (auto done = r.take_all(flags, value_origin::flag); !done)
    return fail(done.error());
  return r.finish();
}

std::vector<std::string> unknown_variables(const std::vector<std::string>& names,
                                           const std::vector<std::string_view>& known) {
  std::vector<std::string> ours;
  for (const auto& row : option_table())
    ours.push_back(variable_of(row));
  std::vector<std::string_view> candidates(ours.begin(), ours.end());
  candidates.insert(candidates.end(), known.begin(), known.end());
  std::vector<std::string> warnings;
  for (const auto& name : names)
    if (name.starts_with("TROUPE_")
        && std::find(candidates.begin(), candidates.end(), name) == candidates.end())
      warnings.push_back(
        fmt::format("{} is set but means nothing{}", name, did_you_mean(name, candidates)));
  return warnings;
}

std::string explain(const settings& s) {
  std::size_t widest_name = 0, widest_value = 0;
  for (const auto& x : s.explained) {
    widest_name = std::max(widest_name, x.name.size());
    widest_value = std::max(widest_value, std::min<std::size_t>(x.value.size(), 40));
  }
  std::string out;
  for (const auto& x : s.explained)
    out += fmt::format("{:<{}}  {:<{}}  ({})\n", x.name, widest_name,
                       x.value.empty() ? "-" : x.value, widest_value, x.where);
  return out;
}

json to_json(const settings& s) {
  auto out = json::object();
  for (const auto& x : s.explained)
    out[x.name] = {{"value", x.value.empty() ? json{} : json(x.value)},
                   {"from", to_string(x.origin)},
                   {"where", x.where}};
  return out;
}

env_lookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const auto* text = std::getenv(name.c_str());
    return text == nullptr ? std::nullopt : std::optional<std::string>{text};
  };
}

}  // namespace troupe

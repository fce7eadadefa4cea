#include "config/profile_file.hpp"

#include "config/option_value.hpp"
#include "config/yaml_mapping.hpp"
#include "runtime/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace troupe {

extern const std::string_view profile_data_text;
extern const std::string_view profile_default_text;
extern const std::string_view profile_shell_text;
extern const std::string_view profile_tight_text;

namespace {

struct shipped {
  std::string_view name;
  const std::string_view& text;
};

const std::vector<shipped>& shipped_table() {
  static const std::vector<shipped> table{{"data", profile_data_text},
                                          {"default", profile_default_text},
                                          {"shell", profile_shell_text},
                                          {"tight", profile_tight_text}};
  return table;
}

// --- the keys
// ---------------------------------------------------------------------------------------

struct profile_row {
  option_spec form;
  /// Errors  invalid_argument: what is wrong with it, without saying where it stands.
  result<void> (*assign)(profile_settings& into, const option_value& value);
};

using list = std::vector<std::string>;
constexpr double tebi = 1'099'511'627'776.0;

template <auto Member>
result<void> to_limit(profile_settings& into, const option_value& value) {
  using type = std::remove_reference_t<decltype(into.limits.*Member)>;
  into.limits.*Member = static_cast<type>(std::get<std::int64_t>(value));
  return {};
}

template <auto Member>
result<void> to_profile(profile_settings& into, const option_value& value) {
  using type = std::remove_reference_t<decltype(into.profile.*Member)>;
  into.profile.*Member = std::get<type>(value);
  return {};
}

/// Each sandbox has its own there, which would hide a mount or break without it.
bool is_of_each_sandbox(const std::string& path) {
  for (std::string own : {"/dev", "/proc", "/work", "/tmp", "/old"})
    if (path == own || path.starts_with(own + "/"))
      return true;
  return false;
}

result<void> to_mounts(profile_settings& into, const option_value& value) {
  for (const auto& text : std::get<list>(value)) {
    auto colon = text.find(':');
    profile_mount m{text.substr(0, colon), colon == text.npos ? text : text.substr(colon + 1)};
    if (!m.from.starts_with('/') || !m.to.starts_with('/') || m.to == "/"
        || m.to.find(':') != m.to.npos || m.to.find("..") != m.to.npos)
      return fail(errc::invalid_argument,
                  fmt::format("mounts: '{}' is not FROM or FROM:TO, both absolute", text));
    auto normal = std::filesystem::path{m.to + "/"}.lexically_normal().parent_path();
    if (m.to = normal; m.to == "/" || is_of_each_sandbox(m.to))
      return fail(errc::invalid_argument,
                  fmt::format("mounts: {} is each sandbox's own; mount {} elsewhere, e.g. {}:/data",
                              m.to, m.from, m.from));
    std::error_code ec;
    if (!std::filesystem::exists(m.from, ec))
      return fail(errc::invalid_argument, fmt::format("mounts: {} is not there", m.from));
    into.profile.mounts.push_back(std::move(m));
  }
  return {};
}

result<void> to_network(profile_settings& into, const option_value& value) {
  auto rules = std::get<list>(value);
  if (rules.empty() || rules == list{"none"})
    return {};
  auto policy = parse_egress_policy(rules);
  if (!policy)
    return fail(errc::invalid_argument, "network: " + policy.error().detail);
  into.profile.network = std::move(*policy);
  return {};
}

result<void> to_required(profile_settings& into, const option_value& value) {
  static const std::vector<std::string_view> names{"cgroups", "host_uids", "landlock", "proc",
                                                   "nesting_limit"};
  for (const auto& name : std::get<list>(value)) {
    auto layer = isolation_layer_from(name);
    if (!layer)
      return fail(errc::invalid_argument,
                  fmt::format("require: there is no layer '{}'{}; there are {}", name,
                              did_you_mean(name, names), fmt::join(names, ", ")));
    into.profile.required.push_back(*layer);
  }
  return {};
}

result<void> to_root(profile_settings& into, const option_value& value) {
  auto path = std::get<std::string>(value);
  std::error_code ec;
  if (!path.starts_with('/') || !std::filesystem::is_directory(path, ec))
    return fail(errc::invalid_argument,
                fmt::format("root: '{}' is no directory, given by its absolute path", path));
  into.profile.root = std::move(path);
  return {};
}

result<void> to_python(profile_settings& into, const option_value& value) {
  into.profile.python = std::get<std::string>(value);
  if (!into.profile.python.starts_with('/'))
    return fail(errc::invalid_argument, "python: give the absolute path that it has in the root");
  return {};
}

option_spec form(std::string_view name, option_type type, double least = 0, double most = 0) {
  option_spec spec;
  spec.name = name;
  spec.type = type;
  spec.least = least;
  spec.most = most;
  return spec;
}

const std::vector<profile_row>& rows() {
  using t = option_type;
  using s = profile_settings;
  using v = const option_value&;
  using limits = sandbox_limits;
  static const std::vector<profile_row> table{
    {form("description", t::text),
     [](s& into, v x) -> result<void> {
       into.description = std::get<std::string>(x);
       return {};
     }},
    // the root and what is loaded in it
    {form("root", t::text), to_root},
    {form("python", t::text), to_python},
    {form("programs", t::list), to_profile<&sandbox_profile::programs>},
    {form("mounts", t::list), to_mounts},
    {form("preload", t::list), to_profile<&sandbox_profile::preload>},
    {form("preload_if_present", t::list), to_profile<&sandbox_profile::preload_if_present>},
    {form("ready", t::whole, 0, 1'000),
     [](s& into, v x) -> result<void> {
       into.profile.ready = static_cast<std::size_t>(std::get<std::int64_t>(x));
       return {};
     }},
    // what snippets may do
    {form("imports", t::list),
     [](s& into, v x) -> result<void> {
       into.imports = std::get<list>(x);
       return {};
     }},
    {form("network", t::list), to_network},
    {form("require", t::list), to_required},
    {form("checkpoints", t::boolean),
     [](s& into, v x) -> result<void> {
       into.checkpoints = std::get<bool>(x);
       return {};
     }},
    // limits
    {form("memory", t::bytes, 128 << 20, tebi), to_limit<&limits::memory_bytes>},
    {form("cpus", t::real, 0, 1'024),
     [](s& into, v x) -> result<void> {
       into.limits.cpus = std::get<double>(x);
       return {};
     }},
    {form("processes", t::whole, 4, 32'768), to_limit<&limits::processes>},
    {form("open_files", t::whole, 32, 1 << 20), to_limit<&limits::open_files>},
    {form("file_size", t::bytes, 0, tebi), to_limit<&limits::file_bytes>},
    {form("work_size", t::bytes, 4'096, tebi), to_limit<&limits::work_bytes>},
    {form("tmp_size", t::bytes, 4'096, tebi), to_limit<&limits::tmp_bytes>},
    {form("output_size", t::bytes, 1, tebi), to_limit<&limits::output_bytes>},
    {form("shown_output", t::bytes, 0, tebi), to_limit<&limits::shown_bytes>},
    {form("tool_calls", t::whole, 0, 1'000'000), to_limit<&limits::tool_calls>},
    {form("open_timeout", t::duration, 0.01, 3'600),
     [](s& into, v x) -> result<void> {
       into.limits.open_timeout = std::get<millis>(x);
       return {};
     }},
  };
  return table;
}

const profile_row* find_row(std::string_view name) {
  auto it = std::ranges::find_if(rows(), [&](const profile_row& r) { return r.form.name == name; });
  return it == rows().end() ? nullptr : &*it;
}

mapping_kind profile_kind() {
  mapping_kind kind;
  kind.find = [](const std::string& key) -> const option_spec* {
    auto* row = find_row(key);
    return row != nullptr ? &row->form : nullptr;
  };
  for (const auto& row : rows())
    kind.names.push_back(row.form.name);
  return kind;
}

result<void> take(profile_settings& into, const option_input& in) {
  const auto& row = *find_row(in.name);
  auto value = parse_option(row.form, in.words);
  auto done = value ? row.assign(into, *value) : fail(value.error());
  if (!done)
    return fail(done.error().code, in.where + ": " + done.error().detail);
  return {};
}

}  // namespace

sandbox_spec profile_settings::spec() const {
  sandbox_spec spec;
  spec.profile = profile.name;
  spec.imports = imports;
  spec.checkpoints = checkpoints;
  spec.limits = limits;
  spec.network = profile.network.has_value();
  return spec;
}

std::vector<std::string_view> shipped_profiles() {
  std::vector<std::string_view> names;
  for (const auto& s : shipped_table())
    names.push_back(s.name);
  return names;
}

result<profile_settings> parse_profile(std::string_view text, const std::string& name,
                                       const std::string& where) {
  auto inputs = parse_mapping(text, where, profile_kind());
  if (!inputs)
    return fail(inputs.error());
  profile_settings out;
  out.profile.name = name;
  out.profile.ready = 4;
  for (const auto& in : *inputs)
    if (auto taken = take(out, in); !taken)
      return fail(taken.error());
  return out;
}

result<profile_settings> find_profile(const std::string& name_or_path) {
  for (const auto& s : shipped_table())
    if (s.name == name_or_path)
      return parse_profile(s.text, name_or_path, "profile " + name_or_path);
  if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".yaml"))
    return fail(errc::not_found,
                fmt::format("there is no sandbox profile '{}'{}; there are {}, or give a file's "
                            "path",
                            to_utf8(name_or_path), did_you_mean(name_or_path, shipped_profiles()),
                            fmt::join(shipped_profiles(), ", ")));
  auto text = read_small_file(name_or_path);
  if (!text)
    return fail(text.error());
  return parse_profile(*text, std::filesystem::path{name_or_path}.stem(), name_or_path);
}

}  // namespace troupe

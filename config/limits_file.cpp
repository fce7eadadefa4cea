#include "config/limits_file.hpp"

#include "config/option_value.hpp"
#include "config/yaml_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sys/stat.h>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 3> keys{"rpm", "tpm", "max_connections"};

mapping_kind limits_kind() {
  mapping_kind kind;
  kind.find = [](const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) == keys.end() ? nullptr : find_option(key);
  };
  kind.names.assign(keys.begin(), keys.end());
  return kind;
}

/// What changes with every way of writing a file, also within the clock's resolution.
std::string state_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return "gone";
  return fmt::format("{} {} {}.{}", about.st_ino, about.st_size, about.st_mtim.tv_sec,
                     about.st_mtim.tv_nsec);
}

}  // namespace

result<settings> parse_limits(std::string_view text, const std::string& name, settings into) {
  auto rows = parse_mapping(text, name, limits_kind());
  if (!rows)
    return fail(rows.error());
  for (const auto& in : *rows) {
    const auto& row = *find_option(in.name);
    auto value = parse_option(row, in.words);
    if (!value)
      return fail(errc::invalid_argument,
                  fmt::format("{}: {}: {}", in.where, in.name, value.error().detail));
    row.assign(into, *value);
  }
  return into;
}

std::optional<result<settings>> limits_watch::changed() {
  if (path_.empty())
    return std::nullopt;
  auto state = state_of(path_);
  if (state == seen_)
    return std::nullopt;
  seen_ = std::move(state);
  auto text = read_small_file(path_);
  if (!text)
    return fail(text.error());
  return parse_limits(*text, path_, begin_);
}

}  // namespace troupe

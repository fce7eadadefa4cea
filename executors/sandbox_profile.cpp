#include "executors/sandbox_profile.hpp"

#include <array>
#include <utility>

namespace troupe {
namespace {

constexpr std::array<std::pair<isolation_layer, std::string_view>, 5> layer_names{
  {{isolation_layer::cgroups, "cgroups"},
   {isolation_layer::host_uids, "host_uids"},
   {isolation_layer::landlock, "landlock"},
   {isolation_layer::proc, "proc"},
   {isolation_layer::nesting_limit, "nesting_limit"}}};

}  // namespace

std::string_view to_string(isolation_layer layer) noexcept {
  for (const auto& [value, name] : layer_names)
    if (value == layer)
      return name;
  return "";
}

std::optional<isolation_layer> isolation_layer_from(std::string_view name) noexcept {
  for (const auto& [value, known] : layer_names)
    if (known == name)
      return value;
  return std::nullopt;
}

std::vector<std::string> sandbox_profile::usual_modules() {
  return {"ast",         "base64",     "bisect",  "collections", "copy",      "csv",
          "dataclasses", "datetime",   "decimal", "enum",        "fractions", "functools",
          "hashlib",     "heapq",      "io",      "itertools",   "json",      "math",
          "operator",    "os",         "pathlib", "queue",       "random",    "re",
          "stat",        "statistics", "string",  "struct",      "textwrap",  "threading",
          "time",        "traceback",  "typing",  "unicodedata"};
}

}  // namespace troupe

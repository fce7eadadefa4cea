#include "config/yaml_mapping.hpp"

namespace troupe {
namespace {

constexpr const char* usual_name = "troupe.yaml";

std::string refusal_of(const std::string& key) {
  if (key != "api_key")
    return {};
  return "keys do not belong in a file: put the key into a variable and name that with api_key_env";
}

mapping_kind options_kind() {
  mapping_kind kind{find_option, {}, refusal_of};
  for (const auto& row : option_table())
    kind.names.push_back(row.name);
  return kind;
}

}  // namespace

result<std::vector<option_input>> parse_config(std::string_view text, const std::string& name) {
  return parse_mapping(text, name, options_kind());
}

result<std::vector<option_input>> read_config(const std::string& path) {
  auto name = path.empty() ? std::string{usual_name} : path;
  auto text = read_small_file(name);
  if (!text && path.empty() && text.error().code == errc::not_found)
    return std::vector<option_input>{};
  if (!text)
    return fail(text.error());
  return parse_config(*text, name);
}

}  // namespace troupe

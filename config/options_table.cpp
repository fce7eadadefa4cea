#include "config/option_rows.hpp"

namespace troupe {

const std::vector<option_spec>& option_table() {
  static const auto table = [] {
    std::vector<option_spec> all;
    for (auto some : {model_rows(), reply_rows(), agent_rows(), context_rows(), sandbox_rows(),
                      batch_rows(), mock_rows(), output_rows()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return table;
}

const option_spec* find_option(std::string_view name) {
  for (const auto& row : option_table())
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string flag_of(const option_spec& spec) {
  std::string flag = "--";
  for (auto c : spec.name)
    flag += c == '_' ? '-' : c;
  return flag;
}

std::string variable_of(const option_spec& spec) {
  std::string name = "TROUPE_";
  for (auto c : spec.name)
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

}  // namespace troupe

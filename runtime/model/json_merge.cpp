#include "runtime/model/json_merge.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {
namespace {

bool is_name(std::string_view key) {
  constexpr std::array<std::string_view, 4> names = {"type", "id", "format", "index"};
  return std::find(names.begin(), names.end(), key) != names.end();
}

void merge_object(json& whole, const json& piece) {
  for (auto& [key, value] : piece.items()) {
    if (is_name(key) && !value.is_null())
      whole[key] = value;
    else
      merge_piece(whole[key], value);
  }
}

bool same_index(const json& a, const json& b) {
  return a.is_object() && b.is_object() && a.contains("index") && b.contains("index")
         && a["index"] == b["index"];
}

/// The element of that "index", or a new one. Pieces of one element come together: a look at the
/// last few is enough, and bounds what a long list may cost.
json& element_for(json& list, const json& element) {
  constexpr std::size_t looked_at = 64;
  auto first = list.size() > looked_at ? list.size() - looked_at : 0;
  for (auto i = list.size(); i-- > first;)
    if (same_index(list[i], element))
      return list[i];
  return list.emplace_back();
}

void merge_list(json& whole, const json& piece) {
  for (auto& element : piece)
    merge_piece(element_for(whole, element), element);
}

}  // namespace

void merge_piece(json& whole, const json& piece) {
  if (piece.is_null())
    return;
  if (whole.is_string() && piece.is_string())
    whole.get_ref<std::string&>() += piece.get_ref<const std::string&>();
  else if (whole.is_object() && piece.is_object())
    merge_object(whole, piece);
  else if (whole.is_array() && piece.is_array())
    merge_list(whole, piece);
  else
    whole = piece;
}

}  // namespace troupe

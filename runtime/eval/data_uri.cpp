#include "runtime/eval/data_uri.hpp"

#include "runtime/core/base64.hpp"

namespace troupe {
namespace {

std::size_t data_begin(std::string_view text) {
  if (!text.starts_with("data:"))
    return std::string_view::npos;
  auto comma = text.find(',');
  constexpr std::string_view mark = ";base64";
  if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(mark))
    return std::string_view::npos;
  return comma + 1;
}

}  // namespace

bool is_data_uri(std::string_view text) {
  return data_begin(text) != std::string_view::npos;
}

std::optional<std::string> decode_data_uri(std::string_view text) {
  auto begin = data_begin(text);
  return begin == std::string_view::npos ? std::nullopt : decode_base64(text.substr(begin));
}

}  // namespace troupe

#pragma once
// The rows of the option table, by what they are about, and what their assignments need.

#include "config/options.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

[[nodiscard]] std::vector<option_spec> model_rows();    ///< which, where, how it is asked
[[nodiscard]] std::vector<option_spec> reply_rows();    ///< replies that are cached or recorded
[[nodiscard]] std::vector<option_spec> agent_rows();    ///< kind, tools, limits
[[nodiscard]] std::vector<option_spec> context_rows();  ///< what its model reads and answers
[[nodiscard]] std::vector<option_spec> sandbox_rows();
[[nodiscard]] std::vector<option_spec> batch_rows();
[[nodiscard]] std::vector<option_spec> mock_rows();  ///< of `troupe mock` alone
[[nodiscard]] std::vector<option_spec> output_rows();

namespace rows {

inline constexpr auto on_run = static_cast<std::uint8_t>(command::run);
inline constexpr auto on_eval = static_cast<std::uint8_t>(command::eval);
inline constexpr auto on_mock = static_cast<std::uint8_t>(command::mock);
inline constexpr std::uint8_t on_both = on_run | on_eval;
inline constexpr std::uint8_t on_all = on_both | on_mock;

inline constexpr double day = 86'400;
inline constexpr double u32_max = 4'294'967'295.0;
inline constexpr double i53_max = 9'007'199'254'740'992.0;  // exact in a double

using text_list = std::vector<std::string>;
using text_map = std::map<std::string, std::string>;

inline const std::string& text(const option_value& v) {
  return std::get<std::string>(v);
}
inline std::int64_t whole(const option_value& v) {
  return std::get<std::int64_t>(v);
}
inline std::uint32_t count(const option_value& v) {
  return static_cast<std::uint32_t>(whole(v));
}
inline std::uint64_t large(const option_value& v) {
  return static_cast<std::uint64_t>(whole(v));
}
inline millis span(const option_value& v) {
  return std::get<millis>(v);
}

}  // namespace rows
}  // namespace troupe

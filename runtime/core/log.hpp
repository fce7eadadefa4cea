#pragma once
// Our log: spdlog behind four functions, written to stderr, quiet unless something is wrong.

#include <string_view>

namespace troupe::log {

enum class level { trace, debug, info, warn, error, off };

/// Sets what is shown; default warn. Thread-safe.
void set_level(level least);

/// The level of that name, e.g. "debug"; `fallback` when there is none.
[[nodiscard]] level level_from(std::string_view name, level fallback) noexcept;

void debug(std::string_view line);
void info(std::string_view line);
void warn(std::string_view line);
void error(std::string_view line);

}  // namespace troupe::log

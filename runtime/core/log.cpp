#include "runtime/core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>

namespace troupe::log {
namespace {

// A logger is the one process-wide thing we keep: it only writes, and nothing is decided by it.
spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>(
      "troupe", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *instance;
}

constexpr std::array<std::string_view, 6> names = {"trace", "debug", "info",
                                                   "warn",  "error", "off"};

constexpr std::array<spdlog::level::level_enum, 6> spdlog_levels = {
  spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
  spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};

}  // namespace

void set_level(level least) {
  logger().set_level(spdlog_levels[static_cast<std::size_t>(least)]);
}

level level_from(std::string_view name, level fallback) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<level>(i);
  return fallback;
}

void debug(std::string_view line) {
  logger().debug("{}", line);
}

void info(std::string_view line) {
  logger().info("{}", line);
}

void warn(std::string_view line) {
  logger().warn("{}", line);
}

void error(std::string_view line) {
  logger().error("{}", line);
}

}  // namespace troupe::log

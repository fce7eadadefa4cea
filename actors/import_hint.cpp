#include "actors/import_hint.hpp"

#include "runtime/core/log.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

namespace troupe {
namespace {

constexpr std::size_t max_hints = 16;
constexpr std::size_t max_name = 100;

bool names_module(std::string_view name) {
  return !name.empty() && name.size() <= max_name && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '.';
  });
}

bool is_new(std::string_view module) {
  static std::mutex lock;
  static std::set<std::string, std::less<>> told;
  std::lock_guard held{lock};
  return told.size() < max_hints && told.emplace(module).second;
}

}  // namespace

void hint_at_imports(const snippet_error& e) {
  auto module = refused_import(e);
  if (module && names_module(*module) && is_new(*module))
    log::warn("code wanted to import '" + std::string{*module}
              + "', which is not allowed: --imports (in a file: imports) would allow it");
}

}  // namespace troupe

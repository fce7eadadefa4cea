#pragma once
// An environment that a test writes down.

#include "config/options.hpp"

#include <map>
#include <utility>

namespace troupe::test {

inline env_lookup environment(std::map<std::string, std::string> variables) {
  return [all = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    auto it = all.find(name);
    return it == all.end() ? std::nullopt : std::optional{it->second};
  };
}

}  // namespace troupe::test

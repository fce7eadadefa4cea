#pragma once
// Strong ids: a run's id cannot be passed where a call's id is meant.

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

template <class Tag>
struct id {
  std::uint64_t value = 0;

  auto operator<=>(const id&) const = default;
  [[nodiscard]] explicit operator bool() const noexcept { return value != 0; }
};

template <class Tag>
[[nodiscard]] std::string to_string(id<Tag> x) {
  return std::to_string(x.value);
}

template <class Inspector, class Tag>
bool inspect(Inspector& f, id<Tag>& x) {
  return f.object(x).fields(f.field("value", x.value));
}

using run_id = id<struct run_tag>;          ///< one agent on one task; unique in a journal
using call_id = id<struct call_tag>;        ///< one tool call; unique in its run
using sandbox_id = id<struct sandbox_tag>;  ///< one sandbox; unique in the process

}  // namespace troupe

template <class Tag>
struct std::hash<troupe::id<Tag>> {
  std::size_t operator()(troupe::id<Tag> x) const noexcept {
    return std::hash<std::uint64_t>{}(x.value);
  }
};
